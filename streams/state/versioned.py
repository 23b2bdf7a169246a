"""The versioned store: what each key had at which time, as far back as its history is kept (KIP-889).

A version is valid from its own time to that of the key's next one; one without a value, a tombstone, ends
the version before it. The changelog has a record for each version:

    key bytes ... | int64 valid from, ms   ->   uint8 mark | value bytes ...

Kafka Streams writes the key alone there, and keeps compaction off by the broker's clock for as long as the
history is. That loses the versions of historical records, whose times are older than that at once; under a
key of its own each version stays until stream time is past it.
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
"""What `put` returns of a key's latest version."""
PUT_RETURN_CODE_NOT_PUT = -(2**63)
"""What `put` returns of a version that is older than the history kept, and so was not put."""

TOMBSTONE, TOMBSTONE_BEFORE_ANOTHER, VALUE, VALUE_OVER_TOMBSTONE = range(4)
"""The marks of versions. Kafka Streams has no room for tombstones among the latest values, only for where the
version before them ends. So a null put at the very time of a key's latest value leaves a tombstone if a
version ends there, or a tombstone was there before, and else takes the value out as if it had never been.
"""

EXPIRED_VERSIONS_MAX = 10_000
"""So many versions are looked at with one commit, or twice as many as it changes if that is more."""

TIME_BYTES = 40
"""About what a version's time takes in memory."""


class VersionedRecord(NamedTuple, Generic[V]):
    """A version: its value, the time (ms) it is valid from, and that up to which; None for a key's latest."""

    value: V
    timestamp: int
    valid_to: int | None = None


class VersionSerde(Serde[tuple[Any, int]]):
    """Values with their marks."""

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
    """Typed reading and writing of versions over the cache. What is put is heard of at once, never later."""

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
        """The latest version of ``key``, or the one that was valid at ``as_of`` (ms); None if there is none,
        or if that is longer ago than history is kept.
        """
        raw = self.spec.key_serde.serialize(key)
        if as_of is None:
            entry = self.latest(raw)
            return None if entry is None else VersionedRecord(*entry)
        return self._valid_at(raw, self.key_times.of(raw), as_of, self._value)

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Set what ``key`` has from ``timestamp`` (ms) on; None is a tombstone.

        Returns up to when, PUT_RETURN_CODE_VALID_TO_UNDEFINED for a key's latest version, or
        PUT_RETURN_CODE_NOT_PUT for one older than the history kept.
        """
        return self.put_version(self.spec.key_serde.serialize(key), value, timestamp)

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Put a tombstone; returns the version that was valid at ``timestamp`` (ms) before."""
        if timestamp < self._oldest:
            return None
        before = self.get(key, timestamp)
        self.put(key, None, timestamp)
        return before

    def versions(
        self, key: K, from_time: int | None = None, to_time: int | None = None, *, descending: bool = True
    ) -> Iterator[VersionedRecord[V]]:
        """The values that ``key`` had at any time from ``from_time`` to ``to_time`` (ms, both included), the
        latest first unless told otherwise (KIP-968).
        """
        raw = self.spec.key_serde.serialize(key)
        times = self.key_times.of(raw)
        found = list(self._found(raw, times, from_time, to_time, self._value))
        return iter(found if descending else reversed(found))

    def _found(
        self,
        raw: bytes,
        times: list[int],
        from_time: int | None,
        to_time: int | None,
        value_of: Callable[[bytes, int], Any],
    ) -> Iterator[VersionedRecord[V]]:
        """Latest first. Of what has ended, what is in a segment that is still kept, as in Kafka Streams."""
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

    # -- from outside, so that nothing stays in memory for it; it may be a copy that others write to

    def peek_version(self, raw: bytes, as_of: int | None = None) -> VersionedRecord[V] | None:
        """As `get`, by the key's bytes."""
        times = self._peek_times(raw)
        if not times:
            return None
        return self._valid_at(raw, times, times[-1] if as_of is None else as_of, self._peek_value)

    def peek_versions(
        self, raw: bytes, from_time: int | None, to_time: int | None
    ) -> Iterator[VersionedRecord[V]]:
        """As `versions`, by the key's bytes, the latest first."""
        return self._found(raw, self._peek_times(raw), from_time, to_time, self._peek_value)

    def _peek_times(self, raw: bytes) -> list[int]:
        times = self.key_times.peek(raw)
        return self._versions.times_of(raw) if times is None else times

    def _peek_value(self, raw: bytes, time: int) -> Any:
        entry = self.peek(version_key(raw, time))
        return None if entry is None else entry[0][0]

    # -- by their bytes, for operators

    def latest(self, raw: bytes) -> Entry | None:
        """Value and timestamp of a key's latest version, None if that is a tombstone or there is none."""
        times = self.key_times.of(raw)
        if not times:
            return None
        value = self._value(raw, times[-1])
        return None if value is None else (value, times[-1])

    def as_of(self, raw: bytes, time: int) -> Entry | None:
        """As `latest`, of the version that was valid at ``time`` (ms)."""
        found = self._valid_at(raw, self.key_times.of(raw), time, self._value)
        return None if found is None else (found.value, found.timestamp)

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
        """As `put`, by the key's bytes."""
        if timestamp < self._oldest:
            return PUT_RETURN_CODE_NOT_PUT
        if timestamp < 0:
            raise StateError(f"store {self.name}: a version is of a time from 0 on, not of {timestamp}")
        self.stream_time = max(self.stream_time, timestamp)
        times = self.key_times.of(raw)
        behind = bisect_right(times, timestamp)
        if behind < len(times):
            valid_to: int = times[behind]
            self._set(raw, value, TOMBSTONE_BEFORE_ANOTHER if value is None else VALUE, timestamp)
            return valid_to
        if behind == 0 or times[behind - 1] != timestamp:
            self._set(raw, value, TOMBSTONE if value is None else VALUE, timestamp)
        else:
            self._replace_latest(raw, value, times)
        return PUT_RETURN_CODE_VALID_TO_UNDEFINED

    def _set(self, raw: bytes, value: Any, mark: int, timestamp: int) -> None:
        self._set_row(version_key(raw, timestamp), (value, mark), timestamp)
        self.key_times.add(raw, timestamp)

    def _replace_latest(self, raw: bytes, value: Any, times: list[int]) -> None:
        """Put a value, or None, at the very time of the latest version."""
        timestamp = times[-1]
        entry = self._row(version_key(raw, timestamp))
        assert entry is not None, "what has a time is there"
        mark = entry[0][1]
        if value is not None:
            self._set(raw, value, VALUE if mark == VALUE else VALUE_OVER_TOMBSTONE, timestamp)
        elif mark != VALUE or self._ends_a_version(raw, times):
            self._set(raw, None, TOMBSTONE, timestamp)
        else:
            self._set_row(version_key(raw, timestamp), None, timestamp)
            self.key_times.remove(raw, timestamp)

    def _ends_a_version(self, raw: bytes, times: list[int]) -> bool:
        """Whether the version before the latest one was put to end there; see TOMBSTONE."""
        if len(times) < 2:
            return False
        entry = self._row(version_key(raw, times[-2]))
        assert entry is not None, "what has a time is there"
        return bool(entry[0][1] != TOMBSTONE)

    def _put_latest(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None:
        self.put_version(key, value, timestamp)

    def _value(self, raw: bytes, time: int) -> Any:
        entry = self._row(version_key(raw, time))
        return None if entry is None else entry[0][0]

    def scan(self, lower: bytes | None = None, upper: bytes | None = None) -> list[tuple[bytes, Any, int]]:
        """StateError: as in Kafka Streams there are no ranges of keys."""
        raise StateError(
            f"store {self.name} is versioned: it is read by key, with get() and versions(), not by ranges"
        )

    # -- time

    @property
    def _oldest(self) -> int:
        """What is of an earlier time (ms) is past the history that is kept."""
        return self.stream_time - self.history_retention_ms

    @property
    def _first_live(self) -> int:
        """The first segment that is kept; a version is of that in which it ends."""
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
        """The times of a key that has nothing in the cache."""
        times = self._versions.times_of(raw)
        self._loaded += len(times)
        return times

    def _expire(self, limit: int) -> None:
        """Delete what ended in segments that are not kept any more, after a look at ``limit`` versions."""
        live_from = self._first_live
        if live_from > self._live_from:
            self._live_from, self._all_expired = live_from, False
            start = live_from * self._versions.segment_ms
            self._delete_ended([key for key in self.pending if valid_from_of(key) < start])
        if not self._all_expired:
            found = self._versions.take_ended(live_from, limit=limit)
            self._all_expired = len(found) < limit
            self._delete_ended(found)

    def _delete_ended(self, stored_keys: list[bytes]) -> None:
        """Delete what ended when these versions began, and themselves if they say only that."""
        newest: dict[bytes, int] = {}
        for stored_key in stored_keys:
            raw, time = key_of(stored_key), valid_from_of(stored_key)
            times = self.key_times.of(raw)
            at = bisect_left(times, time)
            if at < len(times) and times[at] == time:  # else it was taken out since
                newest[raw] = max(time, newest.get(raw, 0))
        for raw, time in newest.items():
            ended = self.key_times.take_before(raw, time)
            entry = self._row(version_key(raw, time))
            assert entry is not None, "what has a time is there"
            if entry[0][1] == TOMBSTONE:
                self.key_times.remove(raw, time)
                ended.append(time)
            for each in ended:
                stored_key = version_key(raw, each)
                self.pending[stored_key] = (None, self.stream_time)
                self._entries.set_absent(stored_key)


def segment_ms_of(spec: StoreSpec) -> int:
    """The length of a store's segments, ms."""
    return spec.segment_interval_ms or segment_ms_for(spec.history_retention_ms or 0)


def with_marks(spec: StoreSpec) -> StoreSpec:
    """The spec of the store's rows."""
    return replace(spec, value_serde=VersionSerde(spec.value_serde))
