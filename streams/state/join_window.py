"""The window store of a joined stream: every record of a key, several with the same timestamp as well.

    key bytes ... | int64 timestamp, ms | int32 sequence number

The sequence numbers of Kafka Streams begin with 1 at each start. So a record after a restart may replace
another of the same timestamp. Here each commit has the last number, from which the next start continues.

The timestamps of each key that was looked up stay in memory, in order. So only a key's first lookup scans the
backend.

Records past retention at a commit cannot be found any more. They leave memory: a cache full of them would
shrink again and again, and drop the timestamps each time. Those that were added since the previous commit are
not written to the changelog and the backend. For an application that lags behind its input, these are most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from streams.state.backend import Backend
from streams.state.join_records import INDEXED_KEY_BYTES, JoinRecords
from streams.state.spec import StoreSpec
from streams.state.window import WindowStore
from streams.state.window_key import SUFFIX, sequence_number

K = TypeVar("K")
V = TypeVar("V")

SEQUENCE = " sequence"
"""The suffix of a store's name for the sequence number of its last record; no store name has a space."""
SEQUENCE_MAX = 0x7FFFFFFF
PAST_MAX, PAST_SHARE = 1000, 4
"""A commit searches for records past retention only if the cache grew since the last search.

It must have grown by PAST_MAX entries, plus one for every PAST_SHARE entries and keys in memory.
"""

Found = list[tuple[int, Any]]
"""Timestamps (ms) and values."""


class JoinWindowStore(WindowStore[K, V]):
    """Every record of the last ``retention_ms`` of stream time, by key and time."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self._sequence = -1
        self._records = JoinRecords(self.update, self.lookup, self._scan_key)
        self._retention_ms = spec.retention_ms
        self._entries_max = PAST_MAX

    def add(self, key: bytes, value: Any, timestamp: int) -> None:
        """Add a record of a key. A value of None only writes a tombstone to the changelog, as in Kafka."""
        sequence = self._sequence = (self._sequence if self._sequence >= 0 else self._last_sequence()) + 1
        sequence &= SEQUENCE_MAX
        newest = self.newest
        if value is None:
            self.update(key + SUFFIX.pack(timestamp, sequence), None, timestamp)
        elif timestamp > newest:
            self.stream_time = self.newest = timestamp
            self._records.add(key, sequence, value, timestamp)
        # A record within retention is in a live segment, so the first test saves the second.
        elif (
            timestamp > newest - self._retention_ms
            or timestamp // self._segments.segment_ms >= self._first_live
        ):
            self._records.add(key, sequence, value, timestamp)

    def find(self, key: bytes, time_from: int, time_to: int) -> Found:
        """Return the records of a key within ``[time_from, time_to]`` ms that are not past retention.

        They are ordered by time, those of the same time as they were put.
        """
        oldest = self.newest - self._retention_ms + 1
        return self._records.find(key, time_from if time_from > oldest else oldest, time_to)

    def _last_sequence(self) -> int:
        """Return the highest sequence number of the stored records, for a store whose last commit has none.

        Such a commit is of an earlier release, which numbered records by changelog offsets, or was lost
        because the inputs were created again.
        """
        numbers = (sequence_number(stored_key) for stored_key, _ in self.backend.scan())
        return max(self.backend.checkpoint or 0, max(numbers, default=0))

    def clocks(self) -> Mapping[str, int]:
        return {**super().clocks(), self.name + SEQUENCE: self._sequence}

    def set_clocks(self, times: Mapping[str, int]) -> None:
        super().set_clocks(times)
        self._sequence = times.get(self.name + SEQUENCE, -1)

    def _scan_key(self, key: bytes) -> set[bytes]:
        """Return the stored keys of a key's records that the backend has."""
        lower, upper = key + SUFFIX.pack(0, 0), key + SUFFIX.pack(2**63 - 1, SEQUENCE_MAX)
        # A longer key may sort in between.
        length = len(lower)
        return {
            stored_key
            for stored_key, _ in self.backend.scan(lower, upper)
            if len(stored_key) == length and stored_key.startswith(key)
        }

    @property
    def cache_bytes(self) -> int:
        return super().cache_bytes + INDEXED_KEY_BYTES * len(self._records)

    def shrink(self) -> None:
        super().shrink()
        self._records.rebuild(self._entries.dirty)

    def drain(self) -> None:
        if len(self._entries) > self._entries_max:
            self._forget_records_before(self.oldest)
            # The search went through everything in memory: the next one waits until a share of it is new.
            in_memory = len(self._entries) + len(self._records)
            self._entries_max = len(self._entries) + in_memory // PAST_SHARE + PAST_MAX
        super().drain()

    def _forget_before(self, time: int) -> None:
        super()._forget_before(time)
        self._forget_records_before(time)

    def _forget_records_before(self, time: int) -> None:
        """Drop the records before a time (ms) from memory; those not drained yet are never written."""
        for stored_key in self._records.take_before(time):
            self._entries.forget(stored_key)
            self._changed = None
