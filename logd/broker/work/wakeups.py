"""Wake-ups of waiting requests: each in the loop's next turn, once however often it was asked for.

So a burst of appends wakes a request once, and none runs in the middle of somebody else's append.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

log = logging.getLogger("logd.broker")


class Sleeper(Protocol):
    """Something that waits, such as a long-polling fetch."""

    def wake(self) -> None:
        """Look again; does nothing if nothing is waited for any more."""


class Wakeups:
    """A set of objects to be woken in the loop's next turn, each at most once.

    ``waiting``: how many wait at all, each counted by itself from its start to its end.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._sleepers: dict[Sleeper, None] = {}

    def add(self, sleeper: Sleeper) -> None:
        """Wake it in the next turn."""
        if not self._sleepers:
            asyncio.get_running_loop().call_soon(self._wake_all)
        self._sleepers[sleeper] = None

    def _wake_all(self) -> None:
        """Wake all; one that fails is logged, and does not keep the others from it."""
        sleepers, self._sleepers = self._sleepers, {}
        for sleeper in sleepers:
            try:
                sleeper.wake()
            except Exception:
                log.exception("%s failed when it was woken", sleeper)
