"""Deadlines by key, kept as data: the core says when it wants to be woken, somebody else owns the clock."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple


class DeadlineKey(NamedTuple):
    """What is to happen: `kind` is "heartbeat", "join" or "sync"; a whole group's has no `member_id`."""

    kind: str
    group_id: str
    member_id: str = ""


class Deadlines:
    """At most one deadline per key.

    A heartbeat moves its deadline further away every few seconds, so moving must be cheap: the heap keeps the
    earlier time, and the key goes back into it when that time comes.
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
        """The key is due at `at_ms`, instead of whatever was set before."""
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._queue(key, at_ms)

    def cancel(self, key: DeadlineKey) -> None:
        """The key is not due any more."""
        self._at.pop(key, None)

    def due(self, now_ms: int) -> Iterator[DeadlineKey]:
        """Keys whose time has come, earliest first; each is forgotten when it is given out."""
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
        """Move all deadlines, for a clock that was set."""
        self._at = {key: at_ms + by_ms for key, at_ms in self._at.items()}
        self._queued = dict(self._at)
        self._heap = [(at_ms, key) for key, at_ms in self._at.items()]
        heapq.heapify(self._heap)

    @property
    def next_ms(self) -> int | None:
        """When to call `due` next: at or before the first deadline; None without deadlines."""
        return self._heap[0][0] if self._heap else None

    def _queue(self, key: DeadlineKey, at_ms: int) -> None:
        self._queued[key] = at_ms
        heapq.heappush(self._heap, (at_ms, key))
