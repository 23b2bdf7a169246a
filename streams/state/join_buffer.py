"""The store of a stream's records that wait to be joined with a versioned table (KIP-923).

A record waits for the table's updates of its own time. Keys are those of Kafka Streams, in the order in which
the records are joined:

    0 | int64 timestamp, ms | key bytes ... | int32 number among those of the same time and key
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from streams.serdes import Bytes
from streams.serdes.buffered import Buffered, BufferedSerde
from streams.state.backend import Backend
from streams.state.key_value import KeyValueStore
from streams.state.spec import StoreSpec

_HEAD = struct.Struct(">Bq")
_NUMBER = struct.Struct(">i")
_NUMBERS = 2**31
QUEUED_BYTES = 120
"""The approximate memory of a record besides the cache's entry: its key."""


def join_buffer_spec(name: str) -> StoreSpec:
    """Return the spec of a buffer with this name."""
    return StoreSpec(
        name=name, kind="join_buffer", key_serde=Bytes(), value_serde=BufferedSerde(), cached=False
    )


class JoinBufferStore(KeyValueStore[bytes, Buffered]):
    """A store of records by time and key. The first access loads all stored keys into memory."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self.stream_time = -1
        """Highest timestamp put, ms; -1 before the first. Committed with the task's positions."""
        self._queue: list[bytes] | None = None
        self._number = 0

    def add(self, raw: bytes, record: Buffered) -> None:
        """Add a record to the buffer; ``raw``: its key's bytes."""
        queue = self._loaded()
        self._number = (self._number + 1) % _NUMBERS
        stored_key = _HEAD.pack(0, record.timestamp) + raw + _NUMBER.pack(self._number)
        self.stream_time = max(self.stream_time, record.timestamp)
        heappush(queue, stored_key)
        self.put_new(stored_key, record, record.timestamp)

    def take(self, up_to: int) -> Iterator[tuple[bytes, Buffered]]:
        """Remove and yield the records of times (ms) up to ``up_to``, by time, key and number.

        Each comes with its key bytes.
        """
        queue = self._loaded()
        while queue and _HEAD.unpack_from(queue[0])[1] <= up_to:
            stored_key = heappop(queue)
            entry = self.lookup(stored_key)
            assert entry is not None, "every key in the queue is in the store"
            self.withdraw(stored_key, entry[1])
            yield stored_key[_HEAD.size : -_NUMBER.size], entry[0]

    def _loaded(self) -> list[bytes]:
        if self._queue is None:
            self._queue = [key for key, _ in self.backend.scan()]  # in order, so it is a heap
            numbers = (_NUMBER.unpack_from(key, len(key) - _NUMBER.size)[0] for key in self._queue)
            self._number = max(numbers, default=0)
        return self._queue

    def clocks(self) -> Mapping[str, int]:
        return {self.name: self.stream_time}

    def set_clocks(self, times: Mapping[str, int]) -> None:
        self.stream_time = times.get(self.name, -1)

    @property
    def cache_bytes(self) -> int:
        return super().cache_bytes + QUEUED_BYTES * len(self._queue or ())
