"""The index of a join's window store: which records each key has, in the order of their timestamps.

This module is compiled by Cython. It also runs as plain Python, only slower.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

try:
    from kafka_client import without_cython as cython
except ModuleNotFoundError:
    import cython  # type: ignore[no-redef]  # never run: it tells Cython that the name is its own

from streams.state.window_key import SUFFIX, window_start

INDEXED_KEY_BYTES = 300
"""Memory of a key in the index besides its records: dict slot, object, two lists."""

_TIME_MIN, _TIME_MAX = -(1 << 63), (1 << 63) - 1
_SUFFIX_BYTES: int = SUFFIX.size
_pack: Any = SUFFIX.pack


@cython.cclass
class _KeyRecords:
    """The timestamps of one key's records in order, and beside each the record's stored key."""

    _times: list[int]
    _stored_keys: list[bytes]

    def __init__(self, stored_keys: list[bytes]) -> None:
        self._times = [window_start(stored_key) for stored_key in stored_keys]
        self._stored_keys = stored_keys


@cython.cclass
class JoinRecords:
    """The index of a join's store: adds records to the store's entries and finds them by key and time.

    ``update`` and ``lookup`` are the store's own. ``scan`` returns the stored keys of a key that the backend
    has. It is called once for a key, when the key is first looked up.
    """

    _update: Any
    _lookup: Any
    _scan: Any
    _indexed: dict[bytes, Any]
    _not_indexed: dict[bytes, list[bytes]]

    def __init__(
        self,
        update: Callable[[bytes, Any, int], None],
        lookup: Callable[[bytes], Any],
        scan: Callable[[bytes], set[bytes]],
    ) -> None:
        self._update = update
        self._lookup = lookup
        self._scan = scan
        self._indexed = {}
        self._not_indexed = {}
        """Stored keys added since the last `rebuild`, of keys that nobody has looked up."""

    def add(self, key: Any, sequence: int, value: Any, timestamp: int) -> None:
        """Add one more record of a key, with the sequence number of its stored key."""
        stored_key = key + _pack(timestamp, sequence)
        self._update(stored_key, value, timestamp)
        indexed = self._indexed.get(key)
        if indexed is None:
            unordered = self._not_indexed.get(key)
            if unordered is None:
                self._not_indexed[key] = [stored_key]
            else:
                unordered.append(stored_key)
            return
        records: _KeyRecords = indexed
        times: list[int] = records._times
        at: cython.Py_ssize_t = _end_of(times, timestamp)
        if at == len(times):
            times.append(timestamp)
            records._stored_keys.append(stored_key)
        else:
            times.insert(at, timestamp)
            records._stored_keys.insert(at, stored_key)

    def find(self, key: Any, time_from: int, time_to: int) -> list[tuple[int, Any]]:
        """Return timestamps (ms) and values of a key's records within ``[time_from, time_to]``.

        They are ordered by time, those of the same time as they were added.
        """
        indexed = self._indexed.get(key)
        records: _KeyRecords = self._index(key) if indexed is None else indexed
        times: list[int] = records._times
        records_in_range: list[tuple[int, Any]] = []
        # A join's range may reach beyond 64 bits; no record's timestamp does.
        if time_from > _TIME_MAX or time_to < _TIME_MIN:
            return records_in_range
        first: cython.longlong = max(time_from, _TIME_MIN)
        at: cython.Py_ssize_t = _end_of(times, min(time_to, _TIME_MAX))
        # Joins look for recent records: those in the range are at the end, and mostly few.
        while at > 0 and times[at - 1] >= first:
            at -= 1
            entry = self._lookup(records._stored_keys[at])
            if entry is not None:
                records_in_range.append((times[at], entry[0]))
        records_in_range.reverse()
        return records_in_range

    @cython.cfunc
    def _index(self, key: Any) -> _KeyRecords:
        stored_keys = self._scan(key)
        stored_keys.update(self._not_indexed.pop(key, ()))
        records = self._indexed[key] = _KeyRecords(sorted(stored_keys))
        return records

    def rebuild(self, stored_keys: Any) -> None:
        """Drop all records from the index but these, which are not in the backend yet."""
        self._indexed.clear()
        self._not_indexed.clear()
        for stored_key in stored_keys:
            self._not_indexed.setdefault(stored_key[:-_SUFFIX_BYTES], []).append(stored_key)

    def take_before(self, time: int) -> list[bytes]:
        """Remove the records before a time (ms), and return their stored keys."""
        removed: list[bytes] = []
        for indexed in self._indexed.values():
            records: _KeyRecords = indexed
            if records._times and records._times[0] < time:
                at = bisect_left(records._times, time)
                removed += records._stored_keys[:at]
                del records._times[:at]
                del records._stored_keys[:at]
        for unordered in self._not_indexed.values():
            past = [stored_key for stored_key in unordered if window_start(stored_key) < time]
            if past:
                removed += past
                unordered[:] = [stored_key for stored_key in unordered if window_start(stored_key) >= time]
        return removed

    def __len__(self) -> int:
        """Return how many keys are in the index, or were added since the last `rebuild`."""
        return len(self._indexed) + len(self._not_indexed)


@cython.cfunc
def _end_of(times: list[int], time: cython.longlong) -> cython.Py_ssize_t:
    """Return the position after the last of the ordered times that is not later than ``time``."""
    at: cython.Py_ssize_t = len(times)
    if at == 0 or times[at - 1] <= time:
        return at
    low: cython.Py_ssize_t = 0
    while low < at:
        middle: cython.Py_ssize_t = (low + at) // 2
        if times[middle] <= time:
            low = middle + 1
        else:
            at = middle
    return low
