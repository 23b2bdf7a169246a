"""The window store of a stream that is joined: every record of a key, several at the same time too.

    key bytes ... | int64 timestamp, ms | int32 sequence number

Kafka Streams' sequence numbers begin with 1 at each start, so that after a restart a record may take the
place of another of the same time. Here the number reached goes with each commit, and they go on from there.

The timestamps of each key that was looked up are kept in memory, in order, so that a lookup of a known key
costs no scan.

What is past retention at a commit is found no more. It leaves memory, or else a cache full of it would shrink
again and again, and the timestamps be lost with it; and what came since the commit before is spared the way
to the changelog and the backend: that is most of what an application behind its input takes in.
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
"""What is put behind a store's name for the number that its last record has; no name has a space."""
SEQUENCE_MAX = 0x7FFFFFFF
PAST_MAX, PAST_SHARE = 1000, 4
"""So many records past retention, and a share of others and keys, are left where they are at a commit."""

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
        """Put one more record of a key. None is no record; the changelog hears of it, as Kafka's does."""
        sequence = self._sequence = (self._sequence if self._sequence >= 0 else self._last_sequence()) + 1
        sequence &= SEQUENCE_MAX
        newest = self.newest
        if value is None:
            self.update(key + SUFFIX.pack(timestamp, sequence), None, timestamp)
        elif timestamp > newest:
            self.stream_time = self.newest = timestamp
            self._records.add(key, sequence, value, timestamp)
        # What is within retention is in a live segment: segments need not be asked for.
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
        """The highest number of those that are here, where no commit tells: of an earlier release, which
        counted with the changelog, or because the inputs were made anew.
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
            # All that is left was gone through for it: not again before some part as much has come.
            left = len(self._entries) + len(self._records)
            self._entries_max = len(self._entries) + left // PAST_SHARE + PAST_MAX
        super().drain()

    def _forget_before(self, time: int) -> None:
        super()._forget_before(time)
        self._forget_records_before(time)

    def _forget_records_before(self, time: int) -> None:
        """Have nothing of them in memory, and nothing written of those that were not drained yet."""
        for stored_key in self._records.take_before(time):
            self._entries.forget(stored_key)
            self._changed = None
