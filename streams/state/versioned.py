"""The versioned store: each key's values with the times of their validity, within a history (KIP-889).

A version is valid from its own time to that of the key's next version. A version without a value, a
tombstone, ends the previous one. The changelog has a record for each version:

    key bytes ... | int64 valid from, ms   ->   uint8 mark | value bytes ...

Kafka Streams writes only the key there, and delays compaction by the length of the history, by the broker's
clock. Historical records are older than that from the beginning, so their versions are lost. Here each
version has a key of its own, so it stays until stream time is past it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from kafka_client.records import Headers
from streams.errors import StateError
from streams.serdes import Serde
from streams.state.backend import Backend
from streams.state.cache import CachedStore
from streams.state.entries import Entry
from streams.state.key_times import KeyTimes
from streams.state.spec import StoreSpec
from streams.state.versions import (
    VersionsBackend,
    key_of,
    segment_ms_for,
    valid_from_of,
    version_key,
)

K = TypeVar("K")
V = TypeVar("V")

PUT_RETURN_CODE_VALID_TO_UNDEFINED = -1
"""The result of `put` for a key's latest version."""
PUT_RETURN_CODE_NOT_PUT = -(2**63)
"""The result of `put` for a version that is older than the history, and so was not put."""

TOMBSTONE, TOMBSTONE_BEFORE_ANOTHER, VALUE, VALUE_OVER_TOMBSTONE = range(4)
"""The marks of versions: whether there is a value, and how a null put at the same time is handled.

Kafka Streams cannot store a tombstone as the latest value, only the end of the previous version. So a null
put at the time of a key's latest value has one of two results. It leaves a tombstone if a version ends there,
or if there was a tombstone before the value. Otherwise it removes the value as if it had never been put.
"""

EXPIRED_VERSIONS_MAX = 10_000
"""A commit examines this many versions for expiry, or twice as many as it changes if that is more."""

TIME_BYTES = 40
"""The approximate memory of a version's time."""


class VersionedRecord(NamedTuple, Generic[V]):
    """A version of a key's value and the time of its validity."""

    value: V
    timestamp: int
    """The time from which the version is valid, ms."""
    valid_to: int | None = None
    """The time up to which the version is valid, ms; None for a key's latest version."""


class VersionSerde(Serde[tuple[Any, int]]):
    """The serde of stored values: a value, None for a tombstone, and its mark."""

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner
        self.immutable = inner.immutable

    def serialize(self, value: tuple[Any, int]) -> bytes:
        data, mark = value
        return bytes((mark,)) + (b"" if data is None else self.inner.serialize(data))

    def deserialize(self, data: bytes) -> tuple[Any, int]:
        if not data or data[0] > VALUE_OVER_TOMBSTONE:
            raise ValueError(f"a version begins with a mark, 0 to {VALUE_OVER_TOMBSTONE}, not {data[:1]!r}")
        return None if data[0] < VALUE else self.inner.deserialize(data[1:]), data[0]


class VersionedStore(CachedStore, Generic[K, V]):
    """A cached store of versions with typed keys and values. Every update is forwarded at once."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        assert spec.history_retention_ms is not None, "the spec has checked it"
        self._versions = VersionsBackend(backend, segment_ms_of(spec))
        super().__init__(with_marks(spec), self._versions)
        self.stream_time = -1
        """Highest time put, ms; -1 before the first. Committed with the task's positions."""
        self.history_retention_ms = spec.history_retention_ms
        self.key_times = KeyTimes(self._load_times)
        """The times of a key's versions, in order."""
        self._loaded = 0
        self._row, self._set_row = self.lookup, self.update
        self.lookup = self.borrow = self.latest
        self.update = self._put_latest
        self._live_from = 0
        self._all_expired = True

    # -- by keys

    def get(self, key: K, as_of: int | None = None) -> VersionedRecord[V] | None:
        """Return the latest version of ``key``, or the one that was valid at ``as_of`` (ms).

        Returns None if there is none, or if it ended before the history.
        """
        raw = self.spec.key_serde.serialize(key)
        if as_of is None:
            entry = self.latest(raw)
            return None if entry is None else VersionedRecord(*entry)
        return self._valid_at(raw, self.key_times.of(raw), as_of, self._value)

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Set the value of ``key`` from ``timestamp`` (ms) on; None is a tombstone.

        Returns the time (ms) up to which the version is valid. PUT_RETURN_CODE_VALID_TO_UNDEFINED: it is the
        key's latest version. PUT_RETURN_CODE_NOT_PUT: it is older than the history, and was not put.
        """
        return self.put_version(self.spec.key_serde.serialize(key), value, timestamp)

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Put a tombstone at ``timestamp`` (ms). Returns the version that was valid at that time before."""
        if timestamp < self._oldest:
            return None
        before = self.get(key, timestamp)
        self.put(key, None, timestamp)
        return before

    def versions(
        self, key: K, from_time: int | None = None, to_time: int | None = None, *, descending: bool = True
    ) -> Iterator[VersionedRecord[V]]:
        """Iterate over the versions of ``key`` that were valid in a range of times (KIP-968).

        ``from_time``, ``to_time``: ms, both included; None is no bound. The latest version comes first if
        ``descending``, otherwise last.
        """
        raw = self.spec.key_serde.serialize(key)
        times = self.key_times.of(raw)
        versions = list(self._valid_between(raw, times, from_time, to_time, self._value))
        return iter(versions if descending else reversed(versions))

    def _valid_between(
        self,
        raw: bytes,
        times: list[int],
        from_time: int | None,
        to_time: int | None,
        value_of: Callable[[bytes, int], Any],
    ) -> Iterator[VersionedRecord[V]]:
        """Yield the versions in a range of times, the latest first.

        As in Kafka Streams, an ended version is left out if its segment has expired.
        """
        oldest_end = self._first_live * self._versions.segment_ms
        only_latest = to_time is not None and to_time < self._oldest
        valid_to: int | None = None
        for time in reversed(times):
            if valid_to is not None and (
                only_latest or valid_to < oldest_end or (from_time is not None and valid_to <= from_time)
            ):
                return
            if to_time is None or time <= to_time:
                value = value_of(raw, time)
                if value is not None:
                    yield VersionedRecord(value, time, valid_to)
            valid_to = time

    # -- for queries: they load nothing into memory, and the store may be a copy that others write to

    def peek_version(self, raw: bytes, as_of: int | None = None) -> VersionedRecord[V] | None:
        """Return the version that `get` returns, for a key's bytes."""
        times = self._peek_times(raw)
        if not times:
            return None
        return self._valid_at(raw, times, times[-1] if as_of is None else as_of, self._peek_value)

    def peek_versions(
        self, raw: bytes, from_time: int | None, to_time: int | None
    ) -> Iterator[VersionedRecord[V]]:
        """Iterate over the versions of `versions`, for a key's bytes, the latest first."""
        return self._valid_between(raw, self._peek_times(raw), from_time, to_time, self._peek_value)

    def _peek_times(self, raw: bytes) -> list[int]:
        times = self.key_times.peek(raw)
        return self._versions.times_of(raw) if times is None else times

    def _peek_value(self, raw: bytes, time: int) -> Any:
        entry = self.peek(version_key(raw, time))
        return None if entry is None else entry[0][0]

    # -- by key bytes, for operators

    def latest(self, raw: bytes) -> Entry | None:
        """Return value and timestamp of a key's latest version, None if it is a tombstone or absent."""
        times = self.key_times.of(raw)
        if not times:
            return None
        value = self._value(raw, times[-1])
        return None if value is None else (value, times[-1])

    def as_of(self, raw: bytes, time: int) -> Entry | None:
        """Return value and timestamp of the version that was valid at ``time`` (ms), or None."""
        version = self._valid_at(raw, self.key_times.of(raw), time, self._value)
        return None if version is None else (version.value, version.timestamp)

    def _valid_at(
        self, raw: bytes, times: list[int], time: int, value_of: Callable[[bytes, int], Any]
    ) -> VersionedRecord[Any] | None:
        at = bisect_right(times, time)
        # A key's latest version never expires, however old it is.
        if at == 0 or (at < len(times) and time < self._oldest):
            return None
        value = value_of(raw, times[at - 1])
        if value is None:
            return None
        return VersionedRecord(value, times[at - 1], times[at] if at < len(times) else None)

    def put_version(self, raw: bytes, value: Any, timestamp: int) -> int:
        """Set a value from ``timestamp`` (ms) on, as `put` does, for a key's bytes."""
        if timestamp < self._oldest:
            return PUT_RETURN_CODE_NOT_PUT
        if timestamp < 0:
            raise StateError(f"store {self.name}: a version is of a time from 0 on, not of {timestamp}")
        self.stream_time = max(self.stream_time, timestamp)
        times = self.key_times.of(raw)
        at = bisect_right(times, timestamp)
        if at < len(times):
            valid_to: int = times[at]
            self._set(raw, value, TOMBSTONE_BEFORE_ANOTHER if value is None else VALUE, timestamp)
            return valid_to
        if at == 0 or times[at - 1] != timestamp:
            self._set(raw, value, TOMBSTONE if value is None else VALUE, timestamp)
        else:
            self._replace_latest(raw, value, times)
        return PUT_RETURN_CODE_VALID_TO_UNDEFINED

    def _set(self, raw: bytes, value: Any, mark: int, timestamp: int) -> None:
        self._set_row(version_key(raw, timestamp), (value, mark), timestamp)
        self.key_times.add(raw, timestamp)

    def _replace_latest(self, raw: bytes, value: Any, times: list[int]) -> None:
        """Put a value, or None, at the time of the latest version."""
        timestamp = times[-1]
        entry = self._row(version_key(raw, timestamp))
        assert entry is not None, "each time has a version"
        mark = entry[0][1]
        if value is not None:
            self._set(raw, value, VALUE if mark == VALUE else VALUE_OVER_TOMBSTONE, timestamp)
        elif mark != VALUE or self._ends_a_version(raw, times):
            self._set(raw, None, TOMBSTONE, timestamp)
        else:
            self._set_row(version_key(raw, timestamp), None, timestamp)
            self.key_times.remove(raw, timestamp)

    def _ends_a_version(self, raw: bytes, times: list[int]) -> bool:
        """Return True if a version ends at the time of the latest one; see TOMBSTONE."""
        if len(times) < 2:
            return False
        entry = self._row(version_key(raw, times[-2]))
        assert entry is not None, "each time has a version"
        return bool(entry[0][1] != TOMBSTONE)

    def _put_latest(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None:
        self.put_version(key, value, timestamp)

    def _value(self, raw: bytes, time: int) -> Any:
        entry = self._row(version_key(raw, time))
        return None if entry is None else entry[0][0]

    def scan(self, lower: bytes | None = None, upper: bytes | None = None) -> list[tuple[bytes, Any, int]]:
        """Raise StateError: as in Kafka Streams, there are no ranges of keys."""
        raise StateError(
            f"store {self.name} is versioned: it is read by key, with get() and versions(), not by ranges"
        )

    # -- time

    @property
    def _oldest(self) -> int:
        """The beginning of the history, ms."""
        return self.stream_time - self.history_retention_ms

    @property
    def _first_live(self) -> int:
        """The first segment that is kept; a version belongs to the segment in which it ends."""
        return max(self._oldest // self._versions.segment_ms, 0)

    def clocks(self) -> Mapping[str, int]:
        return {self.name: self.stream_time}

    def set_clocks(self, times: Mapping[str, int]) -> None:
        self.stream_time = times.get(self.name, -1)

    # -- commit

    @property
    def cache_bytes(self) -> int:
        return super().cache_bytes + self.key_times.bytes + self._loaded * TIME_BYTES

    def drain(self) -> None:
        before = len(self.pending)
        super().drain()
        self._expire(max(EXPIRED_VERSIONS_MAX, 2 * (len(self.pending) - before)))

    def shrink(self) -> None:
        super().shrink()
        self.key_times.keep({key_of(stored_key) for stored_key in self._entries.dirty})
        self._loaded = 0

    def _load_times(self, raw: bytes) -> list[int]:
        """Read the times of a key that has no entries in the cache from the backend, in order."""
        times = self._versions.times_of(raw)
        self._loaded += len(times)
        return times

    def _expire(self, limit: int) -> None:
        """Delete versions that ended in expired segments; examine ``limit`` versions on disk at most."""
        live_from = self._first_live
        if live_from > self._live_from:
            self._live_from, self._all_expired = live_from, False
            start = live_from * self._versions.segment_ms
            self._delete_ended([key for key in self.pending if valid_from_of(key) < start])
        if not self._all_expired:
            stored_keys = self._versions.take_ended(live_from, limit=limit)
            self._all_expired = len(stored_keys) < limit
            self._delete_ended(stored_keys)

    def _delete_ended(self, stored_keys: list[bytes]) -> None:
        """Delete the versions that ended when these began, and these too if they are mere tombstones."""
        newest: dict[bytes, int] = {}
        for stored_key in stored_keys:
            raw, time = key_of(stored_key), valid_from_of(stored_key)
            times = self.key_times.of(raw)
            at = bisect_left(times, time)
            if at < len(times) and times[at] == time:  # else the version was removed meanwhile
                newest[raw] = max(time, newest.get(raw, 0))
        for raw, time in newest.items():
            ended = self.key_times.take_before(raw, time)
            entry = self._row(version_key(raw, time))
            assert entry is not None, "each time has a version"
            if entry[0][1] == TOMBSTONE:
                self.key_times.remove(raw, time)
                ended.append(time)
            for each in ended:
                stored_key = version_key(raw, each)
                self.pending[stored_key] = (None, self.stream_time)
                self._entries.set_absent(stored_key)


def segment_ms_of(spec: StoreSpec) -> int:
    """Return the length of a store's segments, ms."""
    return spec.segment_interval_ms or segment_ms_for(spec.history_retention_ms or 0)


def with_marks(spec: StoreSpec) -> StoreSpec:
    """Return the spec with a value serde that writes the marks of versions."""
    return replace(spec, value_serde=VersionSerde(spec.value_serde))
