"""Deadlines by key, as data: their owner has the clock."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple


class DeadlineKey(NamedTuple):
    """The event that is due: `kind` is "heartbeat", "join" or "sync". A whole group's has no `member_id`."""

    kind: str
    group_id: str
    member_id: str = ""


class Deadlines:
    """A set of deadlines, at most one per key.

    Moving a deadline further away must be cheap: every heartbeat does so every few seconds. So the heap keeps
    the earlier time, and the key returns to the heap at that time.
    """

    def __init__(self) -> None:
        self._at: dict[DeadlineKey, int] = {}
        self._queued: dict[DeadlineKey, int] = {}
        self._heap: list[tuple[int, DeadlineKey]] = []

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: DeadlineKey) -> bool:
        return key in self._at

    def set(self, key: DeadlineKey, at_ms: int) -> None:
        """Set the deadline of `key` to `at_ms`, replacing an earlier one."""
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._queue(key, at_ms)

    def cancel(self, key: DeadlineKey) -> None:
        """Remove the deadline of `key`, if there is one."""
        self._at.pop(key, None)

    def due(self, now_ms: int) -> Iterator[DeadlineKey]:
        """Yield and remove the keys that are due, earliest first."""
        while self._heap and self._heap[0][0] <= now_ms:
            queued_ms, key = heapq.heappop(self._heap)
            if self._queued.get(key) != queued_ms:
                continue
            del self._queued[key]
            at_ms = self._at.get(key)
            if at_ms is None:
                continue
            if at_ms > now_ms:
                self._queue(key, at_ms)
            else:
                del self._at[key]
                yield key

    def shift(self, by_ms: int) -> None:
        """Move all deadlines by ``by_ms``, after the clock was set."""
        self._at = {key: at_ms + by_ms for key, at_ms in self._at.items()}
        self._queued = dict(self._at)
        self._heap = [(at_ms, key) for key, at_ms in self._at.items()]
        heapq.heapify(self._heap)

    @property
    def next_ms(self) -> int | None:
        """The time of the next call to `due`, at or before the first deadline; None without deadlines."""
        return self._heap[0][0] if self._heap else None

    def _queue(self, key: DeadlineKey, at_ms: int) -> None:
        self._queued[key] = at_ms
        heapq.heappush(self._heap, (at_ms, key))
