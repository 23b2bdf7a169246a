"""`TimedStore`: the base of window and session stores, which delete their content by stream time.

Stream time is the highest time put. As in Kafka Streams, content expires by segments
(`streams.state.segments`): a segment past retention is dropped as a whole. No tombstones go to the changelog.
Its records are deleted by a purge (`runtime.purge`), not by the broker's clock, which would delete historical
windows in use.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from streams.state.backend import Backend
from streams.state.cache import CachedStore
from streams.state.entries import Entry
from streams.state.key_times import KeyTimes
from streams.state.segments import SegmentedBackend, segment_ms_for
from streams.state.spec import StoreSpec

NEWEST, EMITTED_TO, OF = " newest", " emitted to", " of "
"""The suffixes of a store's name for its further times; no store name has a space."""


class Clock(Protocol):
    """An object with a stream time (ms)."""

    stream_time: int


class _OtherClock:
    """The stream time of a further operator that writes the store."""

    def __init__(self, stream_time: int) -> None:
        self.stream_time = stream_time


class TimedStore(CachedStore):
    """A cached store over segments.

    ``time_of`` returns a window's start, or a session's end (ms), from the last ``suffix_bytes`` of a stored
    key.
    """

    def __init__(
        self, spec: StoreSpec, backend: Backend, time_of: Callable[[bytes], int], suffix_bytes: int
    ) -> None:
        self._segments = SegmentedBackend(
            backend, segment_ms_for(spec.retention_ms), time_of=time_of, by_time=spec.by_time
        )
        super().__init__(spec, self._segments)
        self.stream_time = -1
        """Highest timestamp seen, ms; -1 before the first. Committed with the task's positions."""
        self.newest = -1
        """Highest time put, ms, by which content expires; never above `stream_time`."""
        self.emitted_to = -1
        """Windows that closed before this (ms) were forwarded by an operator that emits on window close."""
        self.key_times = KeyTimes(self._times_on_disk)
        """The stored times by key, for operators that look up ranges of a key with each record."""
        self.recent: dict[int, dict[bytes, None]] = {}
        """The keys put since the last drain, by time; filled only if `spec.by_time`."""
        self.time_of = time_of
        """Returns the time (ms) in a stored key."""
        self._suffix_bytes = suffix_bytes
        self._others: dict[str, _OtherClock] = {}
        self._restored: Mapping[str, int] = {}
        self._lookback_ms = spec.lookback_ms if spec.cached else 0
        self._live_from = 0

    def clock(self, name: str) -> Clock:
        """Return the stream time by which an operator drops late records; ``""`` is the store's own.

        Several operators that write one store have one each, by name, as in Kafka Streams.
        """
        if not name:
            return self
        restored = self._restored.get(f"{self.name}{OF}{name}", -1)
        return self._others.setdefault(name, _OtherClock(restored))

    def clocks(self) -> Mapping[str, int]:
        """Return all times (ms) to commit, by the store's name with a suffix for each further one."""
        times = {self.name: self.stream_time}
        if self.newest != self.stream_time:
            times[self.name + NEWEST] = self.newest
        if self.emitted_to >= 0:
            times[self.name + EMITTED_TO] = self.emitted_to
        times.update({f"{self.name}{OF}{name}": other.stream_time for name, other in self._others.items()})
        return times

    def set_clocks(self, times: Mapping[str, int]) -> None:
        """Set all times to those of the last commit."""
        self._restored = times
        self.stream_time = times.get(self.name, -1)
        self.newest = times.get(self.name + NEWEST, self.stream_time)
        self.emitted_to = times.get(self.name + EMITTED_TO, -1)

    @property
    def oldest(self) -> int:
        """The earliest time (ms) within retention."""
        return self.newest - self.spec.retention_ms + 1 if self.newest >= 0 else 0

    @property
    def found_from(self) -> int:
        """The earliest time (ms) that is found by key.

        Kafka Streams finds windows past retention as long as its cache has them, and none without a cache. A
        cached store here finds them for a fixed time, so that results do not depend on what is in memory.
        """
        return max(self._first_live * self._segments.segment_ms, 0) if self.spec.cached else self.oldest

    def is_found(self, stored_key: bytes) -> bool:
        """Return False for a key whose time is before `found_from`, even if memory or disk still have it."""
        return self.time_of(stored_key) >= self.found_from

    def set_absent(self, stored_key: bytes) -> None:
        """Mark a key before `found_from` as absent, for a caller who sets the key next."""
        self._entries.set_absent(stored_key)

    @property
    def reader(self) -> Callable[[bytes], Entry | None]:
        lookup, is_found = self.lookup, self.is_found
        return lambda stored_key: lookup(stored_key) if is_found(stored_key) else None

    @property
    def _first_live(self) -> int:
        """The first segment that is not deleted yet."""
        return self._first_live_at(self.newest)

    def _first_live_at(self, newest: int) -> int:
        return (newest - self.spec.retention_ms - self._lookback_ms) // self._segments.segment_ms

    @property
    def emitted_from(self) -> int:
        """The earliest time (ms) of windows that are emitted when they close.

        Kafka Streams looks up closed windows in its store, so it misses those that are past retention by
        then, for example after a jump of time. A cached store deletes no window that was not emitted.
        """
        return 0 if self.spec.cached else self._oldest_emitted

    @property
    @abstractmethod
    def _oldest_emitted(self) -> int: ...

    def scan_keys(self, lower: Any, upper: Any) -> Iterator[tuple[bytes, Any]]:
        """Yield stored keys and values of the keys from ``lower`` to ``upper``, both included.

        They are in byte order of stored keys, include those past retention, and are read at the first step;
        a bound of None is no bound.
        """
        serialize, key_of = self.spec.key_serde.serialize, self.key_of
        first = b"" if lower is None else serialize(lower)
        last = None if upper is None else serialize(upper)
        # A time follows each key, and its first byte is below 0x80. So the stored keys of a prefix of `last`
        # may sort after those of `last`.
        end = last and max(last[:size] + b"\x80" for size in range(1, len(last) + 1))
        for stored_key, value, _ in self.scan(first or None, end or None):
            if first <= (key := key_of(stored_key)) and (last is None or key <= last):
                yield stored_key, value

    def closed(self, first: int, last: int) -> list[bytes]:
        """Return the stored keys of times (ms) from ``first`` to ``last``, both included, by time and key.

        Also removes the keys up to ``last`` from `recent`.
        """
        time_of = self.time_of
        stored_keys = set(self._segments.scan_times(first, last))
        stored_keys.update(key for key in self.pending if first <= time_of(key) <= last)
        for time in [time for time in self.recent if time <= last]:
            keys = self.recent.pop(time)
            if first <= time:
                stored_keys.update(keys)
        return sorted(stored_keys, key=self._order)

    @abstractmethod
    def _order(self, stored_key: bytes) -> Any:
        """Return the sort key of a stored key in `closed`."""

    def _times_on_disk(self, key: bytes) -> list[Any]:
        """Read the times of a key that has no entries in the cache from the backend, in order."""
        rows = self._segments.scan(key, key + b"\x80")  # times are not negative
        # A longer key may sort in between.
        return sorted(self._place(stored) for stored, _ in rows if self.key_of(stored) == key)

    @abstractmethod
    def key_of(self, stored_key: bytes) -> bytes:
        """Return the key's bytes in a stored key."""

    @abstractmethod
    def _place(self, stored_key: bytes) -> Any:
        """Return the time of a stored key as `key_times` keeps it."""

    @abstractmethod
    def _first_place(self, time: int) -> Any:
        """Return the lowest value of `_place` for a time, ms."""

    # -- commit

    @property
    def cache_bytes(self) -> int:
        return super().cache_bytes + self.key_times.bytes

    def drain(self) -> None:
        super().drain()
        self.recent = {}  # its keys are pending now
        self._expire()

    def shrink(self) -> None:
        super().shrink()
        self.key_times.keep({self.key_of(stored_key) for stored_key in self._entries.dirty})

    def _expire(self) -> None:
        """Drop the segments that are wholly past retention."""
        live_from = self._first_live
        if self.spec.by_time and self.spec.cached:
            unemitted_from = max(self.emitted_to - self.spec.window_size_ms, 0)
            live_from = min(live_from, unemitted_from // self._segments.segment_ms)
        if live_from > self._live_from:
            self._live_from = live_from
            self._segments.drop_before(live_from)
            start = live_from * self._segments.segment_ms
            self._leave_out_before(start)
            self._forget_before(start)
            self._changed = None

    def _leave_out_before(self, time: int) -> None:
        """Remove the keys before a time (ms) from `pending`, so that they are not written.

        Their cached entries stay: these keys are not looked up any more.
        """
        # Many keys share few times, so each time is compared once.
        time_of, size = self.time_of, self._suffix_bytes
        suffixes = {key[-size:] for key in self.pending}
        live = {suffix for suffix in suffixes if time_of(suffix) >= time}
        if len(live) < len(suffixes):
            self.pending = {key: each for key, each in self.pending.items() if key[-size:] in live}

    def _forget_before(self, time: int) -> None:
        """Drop the times before a time (ms) from memory."""
        self.key_times.drop_before(self._first_place(time))

    def restored(self) -> None:
        if not (self.spec.by_time and self.spec.cached):  # else windows not emitted yet must stay
            self._segments.drop_before(self._first_live_at(self._segments.highest))

    @property
    def needed_from(self) -> int | None:
        return self._segments.needed_from if self.spec.is_forgotten else None
