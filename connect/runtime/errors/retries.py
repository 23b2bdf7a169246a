"""When a record that failed with a RetriableError is tried again; the rule of RetryWithToleranceOperator."""

from __future__ import annotations

import random
from dataclasses import dataclass

from connect.config import ErrorsConfig

_FIRST_DELAY_MS = 300
_DOUBLINGS_MAX = 40


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`errors.retry.timeout` (-1: no limit) and `errors.retry.delay.max.ms` of a task, in ms."""

    timeout_ms: int = 0
    delay_max_ms: int = 60_000

    @classmethod
    def of(cls, config: ErrorsConfig) -> RetryPolicy:
        """Return the policy that a connector's config asks for."""
        return cls(config.errors_retry_timeout, config.errors_retry_delay_max_ms)

    def delay_seconds(self, attempts: int, elapsed_seconds: float) -> float | None:
        """Return the pause before the next try, or None if there is none.

        `attempts` (1 or more) have failed in `elapsed_seconds`. The pause doubles from 300 ms. Where it would
        be longer than the longest, it is a random part of the longest. It ends at the timeout at the latest.
        """
        remaining_ms = self.timeout_ms - elapsed_seconds * 1000
        if self.timeout_ms >= 0 and remaining_ms <= 0:
            return None
        delay_ms: float = _FIRST_DELAY_MS << min(attempts - 1, _DOUBLINGS_MAX)
        if delay_ms > self.delay_max_ms:
            delay_ms = random.uniform(0, self.delay_max_ms)
        if self.timeout_ms >= 0:
            delay_ms = min(delay_ms, remaining_ms)
        return delay_ms / 1000
