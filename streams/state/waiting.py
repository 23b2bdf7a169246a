"""The store of records that wait for others, in the order of their times.

    int64 timestamp, ms | int64 number | key bytes ...

Numbers tell apart records of the same time, in order of arrival. After a restart they continue from the
highest in the store. Waiting records are also listed in memory, by key and by the stream time of their due.
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
    """The place of a waiting record: by timestamp (ms), then by number in order of arrival."""

    timestamp: int
    number: int
    key: bytes


class WaitingKeys(Serde[tuple[int, int, Any]]):
    """The serde of stored keys: timestamp, number and key."""

    immutable = True

    def __init__(self, key_serde: Serde[Any]) -> None:
        self._key = key_serde

    def serialize(self, value: tuple[int, int, Any]) -> bytes:
        timestamp, number, key = value
        return PLACE.pack(timestamp, number) + self._key.serialize(key)

    def deserialize(self, data: bytes) -> tuple[int, int, Any]:
        return *PLACE.unpack_from(data), self._key.deserialize(data[PLACE.size :])


class WaitingStore(KeyValueStore[Any, Any]):
    """A store of waiting records. Call `begin` before anything else, and `expect` for all it returns."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self._number = 0
        self._is_loaded = False
        self._of: dict[bytes, dict[Waiting, int]] = {}
        self._due: list[tuple[int, Waiting]] = []

    def begin(self) -> list[Waiting]:
        """Load and return the records that waited when the task was opened; none after the first call."""
        if self._is_loaded:
            return []
        self._is_loaded = True
        places = [_place(key) for key, _, _ in self.scan()]
        self._number = max((each.number for each in places), default=0)
        for each in places:
            self._of.setdefault(each.key, {})[each] = NEVER
        return places

    def keep(self, key: bytes, timestamp: int, record: Buffered) -> Waiting:
        """Add a waiting record. Call `expect` with the result next."""
        self._number += 1
        waiting = Waiting(timestamp, self._number, key)
        self._of.setdefault(key, {})[waiting] = NEVER
        self.update(_stored(waiting), record, timestamp)
        return waiting

    def expect(self, waiting: Waiting, due: int) -> None:
        """Make a record due at the stream time ``due`` (ms); of several times the first counts."""
        of_key = self._of[waiting.key]
        if due < of_key[waiting]:
            of_key[waiting] = due
            heapq.heappush(self._due, (due, waiting))

    def of(self, key: bytes) -> list[Waiting]:
        """Return the waiting records of a key."""
        return list(self._of.get(key, ()))

    @property
    def last(self) -> int:
        """The latest timestamp (ms) of the waiting records, -1 if there are none."""
        return max((each.timestamp for of_key in self._of.values() for each in of_key), default=-1)

    def take_due(self, stream_time: int) -> list[Waiting]:
        """Return the records that are due, by time and order of arrival; the caller must `take` each."""
        due = self._due
        if not due or due[0][0] > stream_time:
            return []
        places: set[Waiting] = set()
        while due and due[0][0] <= stream_time:
            waiting = heapq.heappop(due)[1]
            if waiting in self._of.get(waiting.key, ()):
                places.add(waiting)
        return sorted(places)

    def take(self, waiting: Waiting, stream_time: int) -> Buffered:
        """Remove and return a waiting record."""
        stored_key = _stored(waiting)
        entry = self.lookup(stored_key)
        assert entry is not None, "every listed record is in the store"
        record: Buffered = entry[0]
        self.update(stored_key, None, stream_time)
        of_key = self._of[waiting.key]
        del of_key[waiting]
        if not of_key:
            del self._of[waiting.key]
        return record


def _place(stored_key: bytes) -> Waiting:
    timestamp, number = PLACE.unpack_from(stored_key)
    return Waiting(timestamp, number, stored_key[PLACE.size :])


def _stored(waiting: Waiting) -> bytes:
    return PLACE.pack(waiting.timestamp, waiting.number) + waiting.key
