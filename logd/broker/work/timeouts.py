"""Requests that wait for so long and no longer: one timer for all that wait for the same time.

Nearly all requests give the same time and are answered long before, so a timer for each costs more than the
rest of their waiting.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

EARLY_S = 0.001
"""How much too early a timer may be: event loops count in milliseconds."""

log = logging.getLogger("logd.broker")


class Expiring(Protocol):
    """Something that waits for a limited time."""

    def expire(self) -> None:
        """End the wait; called once, unless it was removed before."""


class _Group:
    """Waits of the same length, each with its deadline, oldest first, and one timer for the oldest."""

    __slots__ = ("timer", "waiting")

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.waiting: dict[Expiring, float] = {}
        self.timer = timer


class Timeouts:
    """All that wait, grouped by how long. An empty group has no timer, so it costs nothing."""

    def __init__(self) -> None:
        self._groups: dict[float, _Group] = {}

    def __len__(self) -> int:
        return sum(len(group.waiting) for group in self._groups.values())

    def add(self, who: Expiring, timeout_s: float) -> None:
        """Expire ``who`` in so many seconds, at once if that is less than 0."""
        loop = asyncio.get_running_loop()
        group = self._groups.get(timeout_s)
        if group is None:
            timer = loop.call_later(timeout_s, self._expire, timeout_s)
            group = self._groups[timeout_s] = _Group(timer)
        group.waiting[who] = loop.time() + timeout_s

    def remove(self, who: Expiring, timeout_s: float) -> None:
        """Forget ``who``, which was added with this time and may have expired."""
        group = self._groups.get(timeout_s)
        if group is not None and group.waiting.pop(who, None) is not None and not group.waiting:
            group.timer.cancel()
            del self._groups[timeout_s]

    def _expire(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        group = self._groups[timeout_s]
        limit = loop.time() + EARLY_S
        expired = []
        for who, at in group.waiting.items():
            if at > limit:
                group.timer = loop.call_at(at, self._expire, timeout_s)
                break
            expired.append(who)
        else:
            del self._groups[timeout_s]
        for who in expired:
            del group.waiting[who]
        for who in expired:
            try:
                who.expire()
            except Exception:
                log.exception("%s failed when its time was over", who)
