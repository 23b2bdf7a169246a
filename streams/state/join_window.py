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

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from streams.state.backend import Backend
from streams.state.spec import StoreSpec
from streams.state.window import WindowStore
from streams.state.window_key import SUFFIX, sequence_number, window_start

K = TypeVar("K")
V = TypeVar("V")

SEQUENCE = " sequence"
"""What is put behind a store's name for the number that its last record has; no name has a space."""
SEQUENCE_MAX = 0x7FFFFFFF
INDEXED_KEY_BYTES = 300
"""What a key costs in the index besides its records: dict slot, tuple, two lists."""
PAST_MAX, PAST_SHARE = 1000, 4
"""So many records past retention, and a share of others and keys, are left where they are at a commit."""

Found = list[tuple[int, Any]]
"""Timestamps (ms) and values."""
_Times = tuple[list[int], list[bytes]]
"""Timestamps of one key's records in order, and their stored keys."""


class JoinWindowStore(WindowStore[K, V]):
    """Every record of the last ``retention_ms`` of stream time, by key and time."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self._sequence = -1
        self._times: dict[bytes, _Times] = {}
        self._not_indexed: dict[bytes, list[bytes]] = {}
        """Stored keys put since the last `shrink`, of keys that nobody has looked up."""
        self._entries_max = PAST_MAX

    def add(self, key: bytes, value: Any, timestamp: int) -> None:
        """Put one more record of a key. None is no record; the changelog hears of it, as Kafka's does."""
        stored_key = key + SUFFIX.pack(timestamp, self._next_sequence())
        if value is None:
            self.update(stored_key, None, timestamp)
            return
        if timestamp > self.newest:
            self.stream_time = self.newest = timestamp
        elif timestamp // self._segments.segment_ms < self._first_live:
            return
        self.update(stored_key, value, timestamp)
        known = self._times.get(key)
        if known is None:
            self._not_indexed.setdefault(key, []).append(stored_key)
            return
        times, stored_keys = known
        if not times or timestamp >= times[-1]:
            times.append(timestamp)
            stored_keys.append(stored_key)
        else:
            at = bisect_right(times, timestamp)
            times.insert(at, timestamp)
            stored_keys.insert(at, stored_key)

    def find(self, key: bytes, time_from: int, time_to: int) -> Found:
        """The records of a key within ``[time_from, time_to]`` ms, by time, then as they were put."""
        times, stored_keys = self._times.get(key) or self._times_of(key)
        if not times:
            return []
        oldest = self.oldest
        begin = bisect_left(times, time_from if time_from > oldest else oldest)
        end = bisect_right(times, time_to)
        lookup = self.lookup
        return [
            (times[at], entry[0])
            for at in range(begin, end)
            if (entry := lookup(stored_keys[at])) is not None
        ]

    def _next_sequence(self) -> int:
        if self._sequence < 0:
            self._sequence = self._last_sequence()
        self._sequence += 1
        return self._sequence & SEQUENCE_MAX

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

    def _times_of(self, key: bytes) -> _Times:
        lower, upper = key + SUFFIX.pack(0, 0), key + SUFFIX.pack(2**63 - 1, SEQUENCE_MAX)
        # A longer key may sort in between.
        length = len(lower)
        found = {
            each
            for each, _ in self.backend.scan(lower, upper)
            if len(each) == length and each.startswith(key)
        }
        found.update(self._not_indexed.pop(key, ()))
        stored_keys = sorted(found)
        times = self._times[key] = [window_start(each) for each in stored_keys], stored_keys
        return times

    @property
    def cache_bytes(self) -> int:
        return super().cache_bytes + INDEXED_KEY_BYTES * (len(self._times) + len(self._not_indexed))

    def shrink(self) -> None:
        super().shrink()
        self._times.clear()
        self._not_indexed.clear()
        for stored_key in self._entries.dirty:
            self._not_indexed.setdefault(stored_key[: -SUFFIX.size], []).append(stored_key)

    def drain(self) -> None:
        if len(self._entries) > self._entries_max:
            self._forget_records_before(self.oldest)
            # All that is left was gone through for it: not again before some part as much has come.
            left = len(self._entries) + len(self._times) + len(self._not_indexed)
            self._entries_max = len(self._entries) + left // PAST_SHARE + PAST_MAX
        super().drain()

    def _forget_before(self, time: int) -> None:
        super()._forget_before(time)
        self._forget_records_before(time)

    def _forget_records_before(self, time: int) -> None:
        for times, stored_keys in self._times.values():
            if times and times[0] < time:
                at = bisect_left(times, time)
                self._forget(stored_keys[:at])
                del times[:at], stored_keys[:at]
        for stored_keys in self._not_indexed.values():
            live = [each for each in stored_keys if window_start(each) >= time]
            if len(live) < len(stored_keys):
                self._forget(set(stored_keys).difference(live))
                stored_keys[:] = live

    def _forget(self, stored_keys: Iterable[bytes]) -> None:
        """Have nothing of them in memory, and nothing written of those that were not drained yet."""
        for each in stored_keys:
            self._entries.forget(each)
        self._changed = None
