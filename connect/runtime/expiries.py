"""Expiries: restarts of a connector and its tasks when values of their config providers expire (KIP-297)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

_log = logging.getLogger(__name__)

CONNECTOR = -1
"""The number of the connector itself among its tasks' numbers."""
TTL_MIN_MS = 1_000
"""The shortest time between two restarts, so that a provider with a `ttl` of 0 does not occupy the worker."""
_KEY = "config.action.reload"


class Expiries:
    """The timers of one connector and its tasks. `restart` is called with a number when its values expire.

    Each part is restarted by the worker that runs it. Kafka restarts the connector only, and its tasks keep
    the values that have expired.
    """

    def __init__(self, name: str, restart: Callable[[int], None]) -> None:
        self._name = name
        self._restart = restart
        self._noted: dict[int, float] = {}
        """Seconds until the values of parts expire whose timers do not run yet."""
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def note_values(self, number: int, config: Mapping[str, str], ttl: int | None) -> None:
        """Restart a part `ttl` milliseconds after `begin`, unless its connector's config says `none`."""
        self.forget([number])
        if ttl is None or config.get(_KEY, "restart") != "restart":
            return
        self._noted[number] = max(ttl, TTL_MIN_MS) / 1000

    def begin(self) -> None:
        """Begin the timers of what was noted. Call it when all parts have started.

        Otherwise a connector whose tasks start more slowly than its values expire would never have tasks.
        """
        for number, seconds in self._noted.items():
            what = "the connector" if number == CONNECTOR else f"task {number}"
            _log.info(
                "%s: %s is restarted in %.1f s, when a value of its config expires", self._name, what, seconds
            )
            self._timers[number] = asyncio.get_running_loop().call_later(seconds, self._expire, number)
        self._noted.clear()

    def forget(self, numbers: Iterable[int]) -> None:
        """Restart these parts no more, since they stop."""
        for number in numbers:
            self._noted.pop(number, None)
            if (timer := self._timers.pop(number, None)) is not None:
                timer.cancel()

    def close(self) -> None:
        """Restart nothing more."""
        self.forget([*self._timers, *self._noted])

    def _expire(self, number: int) -> None:
        del self._timers[number]
        self._restart(number)
