"""The window store of a joined stream: every record of a key, several with the same timestamp as well.

    key bytes ... | int64 timestamp, ms | int32 sequence number

The sequence numbers of Kafka Streams begin with 1 at each start. So a record after a restart may replace
another of the same timestamp. Here each commit has the last number, from which the next start continues.

The records of each key that was looked up stay in memory, in order. So only a key's first lookup scans the
backend.

Records past retention at a commit cannot be found any more. They leave memory: a cache full of them would
shrink again and again, and drop all records each time. Those that were added since the previous commit are
not written to the changelog and the backend. For an application that lags behind its input, these are most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from streams.state.backend import Backend
from streams.state.entries import Entry
from streams.state.join_records import SEQUENCE_MAX, JoinRecords
from streams.state.spec import StoreSpec
from streams.state.window import WindowStore
from streams.state.window_key import SUFFIX, sequence_number

K = TypeVar("K")
V = TypeVar("V")

SEQUENCE = " sequence"
"""The suffix of a store's name for the sequence number of its last record; no store name has a space."""
PAST_MAX, PAST_SHARE = 1000, 4
"""A commit searches for records past retention only if the index grew since the last search.

It must have grown by PAST_MAX records, plus one for every PAST_SHARE records in it.
"""

Found = list[tuple[int, Any]]
"""Timestamps (ms) and values."""


class JoinWindowStore(WindowStore[K, V]):
    """Every record of the last ``retention_ms`` of stream time, by key and time."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        self.protects_values = not spec.value_serde.immutable
        self._records = records = JoinRecords(self, spec.retention_ms)
        super().__init__(spec, backend)
        self.protected, self.exposed = self._entries.protected, self._entries.exposed
        self.put_protected = self._entries.put_protected
        self.unwritten = self
        self._search_at = PAST_MAX
        # Operators call these per record.
        self.add: Callable[[bytes, Any, int], None] = records.add
        """Adds a record: its key's bytes, value and timestamp; see `JoinRecords.add`."""
        self.find: Callable[[bytes, int, int], Found] = records.find
        """Returns a key's records within a range of times; see `JoinRecords.find`."""

    # -- what `JoinRecords` calls

    def delete(self, stored_key: bytes, timestamp: int) -> None:
        """Write a tombstone for a stored key."""
        self.update(stored_key, None, timestamp)

    def scan_key(self, key: bytes) -> set[bytes]:
        """Return the stored keys of a key's records that the backend has."""
        lower, upper = key + SUFFIX.pack(0, 0), key + SUFFIX.pack(2**63 - 1, SEQUENCE_MAX)
        # A longer key may sort in between.
        length = len(lower)
        return {
            stored_key
            for stored_key, _ in self.backend.scan(lower, upper)
            if len(stored_key) == length and stored_key.startswith(key)
        }

    def last_sequence(self) -> int:
        """Return the highest sequence number of the stored records, for a store whose last commit has none.

        Such a commit is of an earlier release, which numbered records by changelog offsets, or was lost
        because the inputs were created again.
        """
        numbers = (sequence_number(stored_key) for stored_key, _ in self.backend.scan())
        return max(self.backend.checkpoint or 0, max(numbers, default=0))

    # -- times

    @property
    def stream_time(self) -> int:
        """Highest timestamp seen, ms; -1 before the first."""
        return self._records.stream_time

    @stream_time.setter
    def stream_time(self, time: int) -> None:
        self._records.stream_time = time

    @property
    def newest(self) -> int:
        """Highest timestamp put, ms, by which content expires."""
        return self._records.newest

    @newest.setter
    def newest(self, time: int) -> None:
        self._records.newest = time

    def clocks(self) -> Mapping[str, int]:
        return {**super().clocks(), self.name + SEQUENCE: self._records.sequence}

    def set_clocks(self, times: Mapping[str, int]) -> None:
        super().set_clocks(times)
        self._records.sequence = times.get(self.name + SEQUENCE, -1)

    # -- queries

    def peek(self, key: bytes) -> Entry | None:
        self._records.show()
        return super().peek(key)

    def _changed_keys(
        self, lower: bytes | None, upper: bytes | None, *, backwards: bool = False
    ) -> Iterator[bytes]:
        self._records.show()
        return super()._changed_keys(lower, upper, backwards=backwards)

    # -- commit

    @property
    def unwritten_keys(self) -> int:
        """The number of records that are not in the entries yet."""
        return self._records.unwritten

    def write(self) -> None:
        """Put the records that are within retention into the entries, for a commit."""
        self._records.write(self.oldest)

    @property
    def cache_bytes(self) -> int:
        return super().cache_bytes + self._records.memory_bytes

    def shrink(self) -> None:
        super().shrink()
        self._records.drop_written()

    def drain(self) -> None:
        super().drain()
        if len(self._records) > self._search_at:
            self._forget_records_before(self.oldest)
            # The search went through everything in memory: the next one waits until a share of it is new.
            left = len(self._records)
            self._search_at = left + left // PAST_SHARE + PAST_MAX

    def _forget_before(self, time: int) -> None:
        super()._forget_before(time)
        self._forget_records_before(time)

    def _forget_records_before(self, time: int) -> None:
        """Drop the records before a time (ms) from memory."""
        for stored_key in self._records.take_before(time):
            self._entries.forget(stored_key)
            self._changed = None
