"""When a task that has failed is started again by itself: a few times, each time later.

Kafka Connect leaves a failed task FAILED until a person restarts it. Here, too, the state is FAILED between
two starts; the status says when the next one comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connect.config import ErrorsConfig

_DOUBLINGS_MAX = 40


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """`errors.restart.*` of a connector."""

    restarts_max: int = 3
    """Restarts in a row; 0: none."""
    backoff_ms: int = 10_000
    """Before the first restart; doubled for each further one."""
    backoff_max_ms: int = 300_000
    reset_ms: int = 600_000
    """A task that ran so long before it failed has all its restarts again."""

    @classmethod
    def of(cls, connector: Mapping[str, Any]) -> RestartPolicy:
        """Return the policy of a connector's config. Raises ConfigError for an invalid value."""
        config = ErrorsConfig.parse(connector)
        return cls(
            config.errors_restart_max,
            config.errors_restart_backoff_ms,
            config.errors_restart_backoff_max_ms,
            config.errors_restart_reset_ms,
        )

    def delay_seconds(self, restarts: int) -> float | None:
        """Return the pause before the next restart after so many in a row, or None if there is none."""
        if restarts >= self.restarts_max:
            return None
        return min(self.backoff_ms << min(restarts, _DOUBLINGS_MAX), self.backoff_max_ms) / 1000


class AutoRestart:
    """The restarts of one task, by a clock of monotonic seconds. It starts nothing: it says when to."""

    def __init__(self, policy: RestartPolicy, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._restarts = 0
        self._started_at = clock()
        self._has_failed = False
        self._due_at: float | None = None

    def note_failure(self) -> float | None:
        """Take note that the task has failed. Return the seconds until its restart, or None if there is none.

        Further calls before `restarted` change nothing.
        """
        now = self._clock()
        if not self._has_failed:
            self._has_failed = True
            if (now - self._started_at) * 1000 >= self._policy.reset_ms:
                self._restarts = 0
            delay = self._policy.delay_seconds(self._restarts)
            self._due_at = None if delay is None else now + delay
        return None if self._due_at is None else max(0.0, self._due_at - now)

    @property
    def is_due(self) -> bool:
        """True if the task has failed, and its time has come."""
        return self._due_at is not None and self._clock() >= self._due_at

    def restarted(self) -> None:
        """Take note that the task starts again."""
        self._restarts += 1
        self._has_failed = False
        self._due_at = None
        self._started_at = self._clock()

    def report(self) -> dict[str, Any]:
        """Return the restarts so far, their bound, and the ms until the next one, for the status.

        Empty for a task that has not failed since it was started by hand.
        """
        if not (self._restarts or self._has_failed):
            return {}
        shown: dict[str, Any] = {"restarts": self._restarts, "restarts_max": self._policy.restarts_max}
        if self._due_at is not None:
            shown["next_restart_ms"] = int(max(0.0, self._due_at - self._clock()) * 1000)
        return {"auto_restart": shown}
