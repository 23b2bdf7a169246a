"""`TimedStore`: what window and session stores share, which is time, and that they forget by it.

Expiry is by the times of what is put and, as in Kafka Streams, by segments (`streams.state.segments`): those
that are past retention are dropped whole. The changelog hears nothing of it. What it has of them goes when it
is purged (`runtime.purge`), not by the broker's clock, which would delete historical windows in use.
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
"""What is put behind a store's name for its other times; no name has a space."""


class Clock(Protocol):
    """Whatever has a stream time."""

    stream_time: int


class _OtherClock:
    """The stream time of one more operator that writes the store."""

    def __init__(self, stream_time: int) -> None:
        self.stream_time = stream_time


class TimedStore(CachedStore):
    """A cache over segments. ``time_of`` finds a window's start, or a session's end, in a stored key, whose
    last ``suffix_bytes`` it looks at.
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
        """Highest time put, ms, which is what expiry goes by; never above `stream_time`."""
        self.emitted_to = -1
        """What closed before this (ms) was forwarded by an operator that does so once windows close."""
        self.key_times = KeyTimes(self._times_on_disk)
        """The times of what is stored, by key; kept by those who look for ranges of a key per record."""
        self.recent: dict[int, dict[bytes, None]] = {}
        """Keys by time that were put since the last drain; kept only where `spec.by_time` says so."""
        self.time_of = time_of
        """From a stored key to its time, ms."""
        self._suffix_bytes = suffix_bytes
        self._others: dict[str, _OtherClock] = {}
        self._restored: Mapping[str, int] = {}
        self._lookback_ms = spec.lookback_ms if spec.cached else 0
        self._live_from = 0

    def clock(self, name: str) -> Clock:
        """The stream time by which an operator says what is late: the store's own, or another one by name.

        Several that write one store have one each, as in Kafka Streams.
        """
        if not name:
            return self
        restored = self._restored.get(f"{self.name}{OF}{name}", -1)
        return self._others.setdefault(name, _OtherClock(restored))

    def clocks(self) -> Mapping[str, int]:
        """All times that outlive the process, by the store's name and what is put behind it."""
        times = {self.name: self.stream_time}
        if self.newest != self.stream_time:
            times[self.name + NEWEST] = self.newest
        if self.emitted_to >= 0:
            times[self.name + EMITTED_TO] = self.emitted_to
        times.update({f"{self.name}{OF}{name}": other.stream_time for name, other in self._others.items()})
        return times

    def set_clocks(self, times: Mapping[str, int]) -> None:
        """Go on from the times of a commit."""
        self._restored = times
        self.stream_time = times.get(self.name, -1)
        self.newest = times.get(self.name + NEWEST, self.stream_time)
        self.emitted_to = times.get(self.name + EMITTED_TO, -1)

    @property
    def oldest(self) -> int:
        """What is of an earlier time (ms) is past retention."""
        return self.newest - self.spec.retention_ms + 1 if self.newest >= 0 else 0

    @property
    def found_from(self) -> int:
        """What is of an earlier time (ms) is not found by key any more.

        Kafka Streams finds in its cache what is past retention, and not without a cache. So does this, but
        for a stated time, so that it does not depend on what happens to be in memory.
        """
        return max(self._first_live * self._segments.segment_ms, 0) if self.spec.cached else self.oldest

    def is_found(self, stored_key: bytes) -> bool:
        """Return False for a key whose time lies before `found_from`, whatever memory or disk have of it."""
        return self.time_of(stored_key) >= self.found_from

    def let_go(self, stored_key: bytes) -> None:
        """Have a key absent that is not found any more, for a caller who sets it next."""
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
        """What is of an earlier time (ms) is not emitted any more when it closes.

        Kafka Streams looks up in its store what closed, so it misses what is past retention by then; a jump
        of time can do that. Not so with a cache: then nothing is deleted that was not emitted.
        """
        return 0 if self.spec.cached else self._oldest_emitted

    @property
    @abstractmethod
    def _oldest_emitted(self) -> int: ...

    def scan_keys(self, lower: Any, upper: Any) -> Iterator[tuple[bytes, Any]]:
        """Stored keys and values of the keys from ``lower`` to ``upper``, both included, in byte order of
        what is stored; None is no bound. Of the moment at which it is begun, with what is past retention.
        """
        serialize, key_of = self.spec.key_serde.serialize, self.key_of
        first = b"" if lower is None else serialize(lower)
        last = None if upper is None else serialize(upper)
        # Behind a key stands a time, whose first byte is below 0x80. A key that another one begins with sorts
        # among those of the other.
        end = last and max(last[:size] + b"\x80" for size in range(1, len(last) + 1))
        for stored_key, value, _ in self.scan(first or None, end or None):
            if first <= (key := key_of(stored_key)) and (last is None or key <= last):
                yield stored_key, value

    def closed(self, first: int, last: int) -> list[bytes]:
        """The stored keys whose times (ms) are from ``first`` to ``last``, by time and key."""
        time_of = self.time_of
        found = set(self._segments.scan_times(first, last))
        found.update(key for key in self.pending if first <= time_of(key) <= last)
        for time in [time for time in self.recent if time <= last]:
            keys = self.recent.pop(time)
            if first <= time:
                found.update(keys)
        return sorted(found, key=self._order)

    @abstractmethod
    def _order(self, stored_key: bytes) -> Any:
        """What `closed` sorts by."""

    def _times_on_disk(self, key: bytes) -> list[Any]:
        """The times of a key that has nothing in the cache."""
        found = self._segments.scan(key, key + b"\x80")  # times are not negative
        # A longer key may sort in between.
        return sorted(self._place(stored) for stored, _ in found if self.key_of(stored) == key)

    @abstractmethod
    def key_of(self, stored_key: bytes) -> bytes:
        """The key's bytes in a stored key."""

    @abstractmethod
    def _place(self, stored_key: bytes) -> Any:
        """What `key_times` keeps of a stored key."""

    @abstractmethod
    def _first_place(self, time: int) -> Any:
        """The lowest one of a time, ms."""

    # -- commit

    @property
    def cache_bytes(self) -> int:
        return super().cache_bytes + self.key_times.bytes

    def drain(self) -> None:
        super().drain()
        self.recent = {}  # it is pending now
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
        """Have nothing of an earlier time (ms) written. Many keys are of few times, which are looked at once.

        What the cache has of them stays there: nobody looks for it any more.
        """
        time_of, size = self.time_of, self._suffix_bytes
        suffixes = {key[-size:] for key in self.pending}
        live = {suffix for suffix in suffixes if time_of(suffix) >= time}
        if len(live) < len(suffixes):
            self.pending = {key: each for key, each in self.pending.items() if key[-size:] in live}

    def _forget_before(self, time: int) -> None:
        """Have nothing in memory of what is of an earlier time, ms."""
        self.key_times.drop_before(self._first_place(time))

    def restored(self) -> None:
        if not (self.spec.by_time and self.spec.cached):  # what is not emitted yet stays
            self._segments.drop_before(self._first_live_at(self._segments.highest))

    @property
    def needed_from(self) -> int | None:
        return self._segments.needed_from if self.spec.is_forgotten else None
