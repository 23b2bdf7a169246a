"""The store of records that wait for others, in the order of their times.

    int64 timestamp, ms | int64 number | key bytes ...

Numbers tell records of the same time apart, in the order in which they came; they go on behind the highest
that is there. What waits is listed in memory as well, by key and by the stream time at which it is due.
"""

from __future__ import annotations

import heapq
import struct
from typing import Any, NamedTuple

from streams.serdes import Serde
from streams.serdes.buffered import Buffered
from streams.state.backend import Backend
from streams.state.key_value import KeyValueStore
from streams.state.spec import StoreSpec

PLACE = struct.Struct(">qq")
NEVER = 2**63
"""Later than any stream time."""


class Waiting(NamedTuple):
    """One record's place: by time, then as they came."""

    timestamp: int
    number: int
    key: bytes


class WaitingKeys(Serde[tuple[int, int, Any]]):
    """Timestamp, number and key."""

    immutable = True

    def __init__(self, key_serde: Serde[Any]) -> None:
        self._key = key_serde

    def serialize(self, value: tuple[int, int, Any]) -> bytes:
        timestamp, number, key = value
        return PLACE.pack(timestamp, number) + self._key.serialize(key)

    def deserialize(self, data: bytes) -> tuple[int, int, Any]:
        return *PLACE.unpack_from(data), self._key.deserialize(data[PLACE.size :])


class WaitingStore(KeyValueStore[Any, Any]):
    """Records as `Buffered` values. Call `begin` before anything else, and `expect` of all it returns."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self._number = 0
        self._begun = False
        self._of: dict[bytes, dict[Waiting, int]] = {}
        self._due: list[tuple[int, Waiting]] = []

    def begin(self) -> list[Waiting]:
        """What was waiting when the task was opened; nothing if this was asked before."""
        if self._begun:
            return []
        self._begun = True
        found = [_place(key) for key, _, _ in self.scan()]
        self._number = max((each.number for each in found), default=0)
        for each in found:
            self._of.setdefault(each.key, {})[each] = NEVER
        return found

    def keep(self, key: bytes, timestamp: int, held: Buffered) -> Waiting:
        """Have one more record wait; say then when it is due."""
        self._number += 1
        waiting = Waiting(timestamp, self._number, key)
        self._of.setdefault(key, {})[waiting] = NEVER
        self.update(_stored(waiting), held, timestamp)
        return waiting

    def expect(self, waiting: Waiting, due: int) -> None:
        """It is due when stream time is there; of several times the first counts."""
        of_key = self._of[waiting.key]
        if due < of_key[waiting]:
            of_key[waiting] = due
            heapq.heappush(self._due, (due, waiting))

    def of(self, key: bytes) -> list[Waiting]:
        """What waits of a key."""
        return list(self._of.get(key, ()))

    @property
    def last(self) -> int:
        """The latest time (ms) of what waits, -1 if nothing does."""
        return max((each.timestamp for found in self._of.values() for each in found), default=-1)

    def take_due(self, stream_time: int) -> list[Waiting]:
        """What is due, by time and as it came; `take` each."""
        due = self._due
        if not due or due[0][0] > stream_time:
            return []
        found: set[Waiting] = set()
        while due and due[0][0] <= stream_time:
            waiting = heapq.heappop(due)[1]
            if waiting in self._of.get(waiting.key, ()):
                found.add(waiting)
        return sorted(found)

    def take(self, waiting: Waiting, stream_time: int) -> Buffered:
        """Remove and return what waits."""
        stored_key = _stored(waiting)
        entry = self.lookup(stored_key)
        assert entry is not None, "what is listed is in the store"
        held: Buffered = entry[0]
        self.update(stored_key, None, stream_time)
        of_key = self._of[waiting.key]
        del of_key[waiting]
        if not of_key:
            del self._of[waiting.key]
        return held


def _place(stored_key: bytes) -> Waiting:
    timestamp, number = PLACE.unpack_from(stored_key)
    return Waiting(timestamp, number, stored_key[PLACE.size :])


def _stored(waiting: Waiting) -> bytes:
    return PLACE.pack(waiting.timestamp, waiting.number) + waiting.key
