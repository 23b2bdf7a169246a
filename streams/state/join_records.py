"""The records of a join's window store in memory: by key, in the order of their timestamps.

A record stays here until the next commit, and most are past retention by then. Such records never get a
stored key, and leave no trace in the store. The store gets the others at the commit, or when somebody scans
the store.

This module is compiled by Cython. It also runs as plain Python, only slower.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

try:
    from kafka_client import without_cython as cython
except ModuleNotFoundError:
    import cython  # type: ignore[no-redef]  # never run: it tells Cython that the name is its own

from streams.state.window_key import SUFFIX

SEQUENCE_MAX = 0x7FFFFFFF
INDEXED_KEY_BYTES = 250
"""Memory of a key in the index besides its records: dict slot, object, list."""
INDEXED_RECORD_BYTES = 110
"""Memory of a record in the index besides its value: tuple, numbers, slot of the list."""

Key: TypeAlias = bytes
"""A key's bytes. By this name Cython does not check the type, which a subclass of `bytes` would not pass."""
_Record: TypeAlias = tuple[int, int, Any]
"""Timestamp, sequence number, and the value as the store keeps it in memory, `_STORED` if only on disk."""

_TIME_MIN, _TIME_MAX = -(1 << 63), (1 << 63) - 1
_STORED: Any = object()
_SUFFIX_BYTES: int = SUFFIX.size
_pack: Any = SUFFIX.pack
_unpack_from: Any = SUFFIX.unpack_from


class RecordStore(Protocol):
    """The store of the records, as `JoinRecords` uses it."""

    protects_values: bool
    """True if the values may be changed in place, so that memory has their `protected` form."""

    def protected(self, key: bytes, value: Any) -> Any:
        """Return what to keep of a key's value, which the caller may change afterwards."""

    def exposed(self, safe_value: Any) -> Any:
        """Return the value of what `protected` returned; the caller may change it."""

    def put_protected(self, stored_key: bytes, safe_value: Any, timestamp: int) -> None:
        """Set a stored key to the value of what `protected` returned."""

    def delete(self, stored_key: bytes, timestamp: int) -> None:
        """Delete a stored key."""

    def lookup(self, stored_key: bytes) -> tuple[Any, int] | None:
        """Return value and timestamp of a stored key, None if absent."""

    def scan_key(self, key: bytes) -> set[bytes]:
        """Return the stored keys of a key that the backend has. Called when a key is first looked up."""

    def last_sequence(self) -> int:
        """Return the highest sequence number of the stored records. Called if no commit has it."""


@cython.cclass
class JoinRecords:
    """Adds records to a join's store and finds them by key and time.

    Invariants: the first `_entered` records in `_unwritten` are in the store's entries, too. Each record in
    `_unwritten` is in the list of its key. `_in_store` has each stored key of the index, with its time, that
    is in the backend or was put into the entries.
    """

    _store: Any
    _protects_values: cython.bint
    _retention_ms: cython.longlong
    _newest: cython.longlong
    _stream_time: cython.longlong
    _sequence: cython.longlong
    _indexed: dict[bytes, Any]
    _not_indexed: dict[bytes, Any]
    _unwritten: list[Any]
    _entered: cython.Py_ssize_t
    _in_store: list[Any]
    _count: cython.Py_ssize_t

    def __init__(self, store: RecordStore, retention_ms: int) -> None:
        self._store = store
        self._protects_values = store.protects_values
        self._retention_ms = min(retention_ms, _TIME_MAX)
        self._newest = self._stream_time = self._sequence = -1
        self._indexed = {}
        self._not_indexed = {}
        """Records added since the last `drop_written`, by key, of keys that nobody has looked up."""
        self._unwritten = []
        """Key and record of all added since the last `write`, in order."""
        self._entered = 0
        self._in_store = []
        self._count = 0

    @property
    def newest(self) -> int:
        """The highest timestamp added, ms; -1 before the first."""
        newest: int = self._newest
        return newest

    @newest.setter
    def newest(self, time: int) -> None:
        self._newest = time

    @property
    def stream_time(self) -> int:
        """The highest timestamp added, ms, or put by `WindowStore.put`."""
        stream_time: int = self._stream_time
        return stream_time

    @stream_time.setter
    def stream_time(self, time: int) -> None:
        self._stream_time = time

    @property
    def sequence(self) -> int:
        """The sequence number of the last record, -1 if unknown. Stored keys have its low 31 bits."""
        sequence: int = self._sequence
        return sequence

    @sequence.setter
    def sequence(self, number: int) -> None:
        self._sequence = number

    @property
    def unwritten(self) -> int:
        """The number of records that only this object has."""
        unwritten: int = len(self._unwritten) - self._entered
        return unwritten

    @property
    def memory_bytes(self) -> int:
        """The approximate memory of the index, without values."""
        keys = len(self._indexed) + len(self._not_indexed)
        size: int = INDEXED_KEY_BYTES * keys + INDEXED_RECORD_BYTES * self._count
        return size

    def add(self, key: Key, value: Any, timestamp: int) -> None:
        """Add a record of a key. A value of None only writes a tombstone to the changelog, as in Kafka."""
        time: cython.longlong = timestamp
        if self._sequence < 0:
            self._sequence = self._store.last_sequence()
        self._sequence += 1
        if value is None:
            self._store.delete(key + _pack(timestamp, self._sequence & SEQUENCE_MAX), timestamp)
            return
        if time > self._newest:
            self._stream_time = self._newest = time
        elif time <= self._newest - self._retention_ms:
            return  # Nobody can find it.
        record = (
            timestamp,
            self._sequence,
            self._store.protected(key, value) if self._protects_values else value,
        )
        self._unwritten.append((key, record))
        self._count += 1
        records: Any = self._indexed.get(key)
        if records is not None:
            _insert(records, record, time)
            return
        records = self._not_indexed.get(key)
        if records is None:
            self._not_indexed[key] = [record]
        else:
            records.append(record)

    def find(self, key: Key, time_from: int, time_to: int) -> list[tuple[int, Any]]:
        """Return timestamps and values of a key's records within ``[time_from, time_to]`` ms and retention.

        They are ordered by time, those of the same time as they were added.
        """
        in_range: list[tuple[int, Any]] = []
        # A join's range may reach beyond 64 bits; no record's timestamp does.
        if time_from > _TIME_MAX or time_to < _TIME_MIN:
            return in_range
        first: cython.longlong = time_from if time_from > _TIME_MIN else _TIME_MIN
        last: cython.longlong = time_to if time_to < _TIME_MAX else _TIME_MAX
        oldest: cython.longlong = self._newest - self._retention_ms + 1
        if first < oldest:
            first = oldest
        indexed: Any = self._indexed.get(key)
        records: list[Any] = self._index(key) if indexed is None else indexed
        at: cython.Py_ssize_t = _end_of(records, last)
        # Joins look for recent records: those in the range are at the end, and mostly few.
        while at > 0:
            at -= 1
            record: tuple[Any, ...] = records[at]
            time: cython.longlong = record[0]
            if time < first:
                break
            safe_value = record[2]
            if safe_value is _STORED:
                entry = self._store.lookup(key + _pack(record[0], record[1]))
                if entry is not None:
                    in_range.append((record[0], entry[0]))
            else:
                in_range.append(
                    (record[0], self._store.exposed(safe_value) if self._protects_values else safe_value)
                )
        if len(in_range) > 1:
            in_range.reverse()
        return in_range

    @cython.cfunc
    def _index(self, key: Key) -> list[Any]:
        """Read a key's stored records from the backend, and put those in memory in order."""
        records: list[Any] = self._not_indexed.pop(key, None) or []
        stored_keys = self._store.scan_key(key)
        if stored_keys:
            in_memory = {(record[0], record[1] & SEQUENCE_MAX) for record in records}
            for stored_key in stored_keys:
                place = _unpack_from(stored_key, len(stored_key) - _SUFFIX_BYTES)
                if place not in in_memory:
                    records.append((*place, _STORED))
                    self._in_store.append((place[0], stored_key))
                    self._count += 1
        records.sort(key=_place_of)
        self._indexed[key] = records
        return records

    def show(self) -> None:
        """Put the records that only this object has into the store's entries, where a query finds them."""
        self._enter(_TIME_MIN)

    def write(self, oldest: int) -> None:
        """Put the records into the store's entries, for a commit, but not those before ``oldest`` (ms)."""
        self._enter(oldest)
        self._unwritten = []
        self._entered = 0

    @cython.cfunc
    def _enter(self, oldest: cython.longlong) -> Any:
        put = self._store.put_protected
        for key, record in self._unwritten[self._entered :]:
            time: cython.longlong = record[0]
            if time >= oldest:
                stored_key = key + _pack(record[0], record[1] & SEQUENCE_MAX)
                put(stored_key, record[2], record[0])
                self._in_store.append((record[0], stored_key))
        self._entered = len(self._unwritten)

    def drop_written(self) -> None:
        """Drop all records but those added since the last `write`; the backend has the others."""
        self._indexed.clear()
        self._not_indexed.clear()
        self._in_store.clear()
        for key, record in self._unwritten:
            self._not_indexed.setdefault(key, []).append(record)
        self._count = len(self._unwritten)

    def take_before(self, time: int) -> list[bytes]:
        """Remove the records before a time (ms), and return the stored keys that the store may have of them.

        Call it after `write`.
        """
        oldest: cython.longlong = time
        for records in self._indexed.values():
            end: cython.Py_ssize_t = _end_of(records, oldest - 1)
            if end:
                del records[:end]
                self._count -= end
        for records in self._not_indexed.values():
            before: cython.Py_ssize_t = len(records)
            records[:] = [record for record in records if record[0] >= time]
            self._count -= before - len(records)
        past = [stored_key for when, stored_key in self._in_store if when < time]
        if past:
            self._in_store = [each for each in self._in_store if each[0] >= time]
        return past

    def __len__(self) -> int:
        """Return the number of records in the index."""
        return self._count


def _place_of(record: _Record) -> tuple[int, int]:
    """Return the sort key of a record within its key: time, then sequence number."""
    return record[:2]


@cython.cfunc
def _insert(records: list[Any], record: Any, time: cython.longlong) -> Any:
    """Insert a record after the last of the ordered records that is not later."""
    at: cython.Py_ssize_t = _end_of(records, time)
    if at == len(records):
        records.append(record)
    else:
        records.insert(at, record)


@cython.cfunc
def _end_of(records: list[Any], time: cython.longlong) -> cython.Py_ssize_t:
    """Return the position after the last of the ordered records that is not later than ``time``."""
    at: cython.Py_ssize_t = len(records)
    low: cython.Py_ssize_t = 0
    # Most times are the latest of their key: look at the last record first.
    middle: cython.Py_ssize_t = at - 1
    while low < at:
        record: tuple[Any, ...] = records[middle]
        when: cython.longlong = record[0]
        if when <= time:
            low = middle + 1
        else:
            at = middle
        middle = (low + at) // 2
    return low
