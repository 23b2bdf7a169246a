"""The session store: one value per key and session, deleted by stream time (`streams.state.timed`).

A session has a start and an end, both inclusive. Sessions merge, so each record needs its key's sessions:
`key_times` has their ends and starts. A session that is replaced before its first drain leaves no trace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from kafka_client.records import Headers
from streams.serdes import Window, Windowed
from streams.serdes.windowed import FOREVER
from streams.state.backend import Backend
from streams.state.session_key import SUFFIX, session_bounds, session_end, session_key
from streams.state.spec import StoreSpec
from streams.state.timed import TimedStore

K = TypeVar("K")
V = TypeVar("V")

Bounds = tuple[int, int]
"""End and start (ms) of a session, in the order by which sessions are sorted."""


class SessionStore(TimedStore, Generic[K, V]):
    """A cached store with typed keys, sessions and values."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend, session_end, SUFFIX.size)
        self.encode_key = self._encode_key
        self.decode_key = self._decode_key
        self._undrained: set[bytes] = set()

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """Return the value of one session, None if absent or expired."""
        if end < self.oldest:
            return None
        entry = self.lookup(session_key(self.spec.key_serde.serialize(key), start, end))
        value: V | None = None if entry is None else entry[0]
        return value

    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> Iterator[tuple[Window, V]]:
        """Iterate over a key's sessions that overlap a range, by their ends.

        They end at ``earliest_end`` ms or later and start at ``latest_start`` ms at most.
        """
        raw = self.spec.key_serde.serialize(key)
        for end, start in self.find(raw, earliest_end, latest_start):
            entry = self.lookup(session_key(raw, start, end))
            if entry is not None:
                yield Window(start, end), entry[0]

    def backward_find_sessions(
        self, key: K, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Window, V]]:
        """Iterate over the sessions of `find_sessions`, the latest end first (KIP-617)."""
        return reversed([*self.find_sessions(key, earliest_end, latest_start)])

    def find_sessions_range(
        self, lower: K | None, upper: K | None, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over sessions that overlap a range, of the keys from ``lower`` to ``upper``, both included.

        They are in byte order of key, end and start; a bound of None is no bound.
        """
        earliest_end = max(earliest_end, self.found_from)
        for stored_key, value in self.scan_keys(lower, upper):
            end, start = session_bounds(stored_key)
            if end >= earliest_end and start <= latest_start:
                yield self._decode_key(stored_key), value

    def backward_find_sessions_range(
        self, lower: K | None, upper: K | None, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over the sessions of `find_sessions_range` from the last to the first."""
        return reversed([*self.find_sessions_range(lower, upper, earliest_end, latest_start)])

    def fetch(self, key: K) -> Iterator[tuple[Window, V]]:
        """Iterate over all sessions of a key, by their ends."""
        return self.find_sessions(key, 0, FOREVER)

    def backward_fetch(self, key: K) -> Iterator[tuple[Window, V]]:
        """Iterate over all sessions of a key, the latest end first."""
        return self.backward_find_sessions(key, 0, FOREVER)

    def fetch_range(self, lower: K | None, upper: K | None) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over all sessions of the keys from ``lower`` to ``upper``; see `find_sessions_range`."""
        return self.find_sessions_range(lower, upper, 0, FOREVER)

    def backward_fetch_range(self, lower: K | None, upper: K | None) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over the sessions of `fetch_range` from the last to the first."""
        return self.backward_find_sessions_range(lower, upper, 0, FOREVER)

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over all sessions that are not expired, in byte order of key, end and start."""
        oldest = self.oldest
        for stored_key, value, _ in self.scan():
            if session_end(stored_key) >= oldest:
                yield self._decode_key(stored_key), value

    def put(self, key: Windowed[K], value: V | None, timestamp: int | None = None) -> None:
        """Set a session; a value of None deletes it."""
        raw, (start, end) = self.spec.key_serde.serialize(key.key), key.window
        self.stream_time = max(self.stream_time, end)
        if value is None:
            self.take_out(raw, start, end)
        else:
            self.update(self.put_in(raw, start, end), value, end if timestamp is None else timestamp)

    def remove(self, key: Windowed[K]) -> None:
        """Delete a session."""
        self.put(key, None)

    # -- what operators call per record

    def find(self, raw: bytes, earliest_end: int, latest_start: int) -> list[Bounds]:
        """Return the bounds of the sessions that `find_sessions` finds for a key's bytes, by their ends."""
        bounds = self.key_times.of(raw)
        if not bounds or bounds[-1][0] < earliest_end:
            return []
        earliest_end = max(earliest_end, self.found_from)
        at = bisect_left(bounds, (earliest_end, -1)) if bounds[0][0] < earliest_end else 0
        return [each for each in bounds[at:] if each[1] <= latest_start]

    def merge(self, raw: bytes, replaced: list[Bounds], start: int, end: int, headers: Headers = ()) -> bytes:
        """Replace sessions that `find` returned by one session.

        Returns its stored key, whose value the caller sets next.
        """
        bounds, new = self.key_times.of(raw), (end, start)
        if len(replaced) == 1 and bounds[-1] == replaced[0]:  # the usual case: the last session grew
            old = replaced[0]
            stored_key = session_key(raw, start, end)
            if old != new:
                bounds[-1] = new
                self._drop(session_key(raw, old[1], old[0]), old[0], headers)
                self._begin(stored_key, end)
            return stored_key
        for old in replaced:
            if old != new:
                self.take_out(raw, old[1], old[0], headers)
        return self.put_in(raw, start, end)

    def put_in(self, raw: bytes, start: int, end: int) -> bytes:
        """Add a session. Returns its stored key, whose value the caller sets next."""
        stored_key = session_key(raw, start, end)
        if self.key_times.add(raw, (end, start)):
            self._begin(stored_key, end)
        return stored_key

    def _begin(self, stored_key: bytes, end: int) -> None:
        if end > self.newest:
            self.newest = end
        if stored_key not in self._entries.dirty:
            self._undrained.add(stored_key)
        if self.spec.by_time:
            self.recent.setdefault(end, {})[stored_key] = None

    def take_out(self, raw: bytes, start: int, end: int, headers: Headers = ()) -> None:
        """Delete a session."""
        self.key_times.of(raw)
        self.key_times.remove(raw, (end, start))
        self._drop(session_key(raw, start, end), end, headers)

    def _drop(self, stored_key: bytes, end: int, headers: Headers) -> None:
        self.newest = max(self.newest, end)
        if stored_key in self._undrained:
            self._undrained.remove(stored_key)
            self._entries.forget(stored_key)
            self._changed = None
        else:
            self.update(stored_key, None, end, headers)

    def drain(self) -> None:
        self._undrained.clear()
        super().drain()

    @property
    def _oldest_emitted(self) -> int:
        segment_ms = self._segments.segment_ms
        return (self.newest - self.spec.retention_ms) // segment_ms * segment_ms

    def _encode_key(self, key: Windowed[K]) -> bytes:
        return session_key(self.spec.key_serde.serialize(key.key), *key.window)

    def _decode_key(self, stored_key: bytes) -> Windowed[K]:
        end, start = session_bounds(stored_key)
        return Windowed(self.spec.key_serde.deserialize(stored_key[: -SUFFIX.size]), Window(start, end))

    def _order(self, stored_key: bytes) -> Any:
        return session_bounds(stored_key), stored_key

    def key_of(self, stored_key: bytes) -> bytes:
        return stored_key[: -SUFFIX.size]

    def _place(self, stored_key: bytes) -> Bounds:
        return session_bounds(stored_key)

    def _first_place(self, time: int) -> Bounds:
        return time, -1
