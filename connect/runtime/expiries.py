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
    """The timers of one connector and its tasks, by number.

    `wake` is called when a timer ends; `take_due` then returns the numbers of what is to be restarted. Each
    part is restarted by the worker that runs it. Kafka restarts the connector only, and its tasks keep the
    values that have expired.
    """

    def __init__(self, name: str, wake: Callable[[], None]) -> None:
        self._name = name
        self._wake = wake
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._due: set[int] = set()

    def note_values(self, number: int, config: Mapping[str, str], ttl: int | None) -> None:
        """Have a part restarted in `ttl` milliseconds, unless its connector's config says `none`."""
        self.forget([number])
        if ttl is None or config.get(_KEY, "restart") != "restart":
            return
        seconds = max(ttl, TTL_MIN_MS) / 1000
        _log.info(
            "%s: a value of the config of %s expires in %.1f s", self._name, self._part(number), seconds
        )
        self._timers[number] = asyncio.get_running_loop().call_later(seconds, self._expire, number)

    def forget(self, numbers: Iterable[int]) -> None:
        """Restart these parts no more, since they stop."""
        for number in numbers:
            self._due.discard(number)
            if (timer := self._timers.pop(number, None)) is not None:
                timer.cancel()

    def take_due(self) -> list[int]:
        """Return the parts that are to be restarted now, each once."""
        due, self._due = sorted(self._due), set()
        for number in due:
            _log.info("%s: %s is restarted, as a value has expired", self._name, self._part(number))
        return due

    def close(self) -> None:
        """Restart nothing more."""
        self.forget([*self._timers, *self._due])

    def _expire(self, number: int) -> None:
        del self._timers[number]
        self._due.add(number)
        self._wake()

    def _part(self, number: int) -> str:
        return "the connector" if number == CONNECTOR else f"task {number}"
