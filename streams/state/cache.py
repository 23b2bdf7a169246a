"""The write-back cache every store has: what changed stays in memory until the commit.

A commit of a store is three steps, told apart because the producer's acks lie in between:

1. `drain()`: what changed since the last commit is forwarded downstream (when the store is cached)
   and comes as bytes into `pending`, which is what goes to the changelog;
2. the caller sends `pending`, waits for the acks and commits the source positions;
3. `written(offset)`: `pending` goes to the backend in one write, with the changelog offset.

Between 1 and 3 records go on being processed: what changes is part of the next commit, and `pending` stays
readable, in the cache as before, until the backend has it. The next `drain` is after `written`.

A crash between any two leaves the backend as of the commit before. `streams.state.entries` says who may
change a value that is in the cache.

Values live in the backend as Kafka Streams' timestamped stores keep them:

    int64 timestamp, ms | value bytes ...
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from streams.state.backend import Backend
from streams.state.entries import Entry, Serialized, entries_for
from streams.state.sorted_keys import SortedKeys
from streams.state.spec import StoreSpec

TIMESTAMP = struct.Struct(">q")

ENTRY_OVERHEAD_BYTES = 250
"""What a cached entry costs besides its value: dict slot, key object, tuple."""
OBJECT_FACTOR = 4
"""A value as Python objects takes about this many times its serialized size."""

Listener = Callable[[bytes, Any, int], None]
"""Hears of a changed key's bytes, its last value and timestamp, at each commit."""
Pending = dict[bytes, Serialized]
"""Key to serialized value (None: deleted) and timestamp."""


class CachedStore:
    """Bytes-keyed entries over a backend; the typed stores and the operators stand on it."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        self.spec = spec
        self.name = spec.name
        self.backend = backend
        self.listener: Listener | None = None
        self.pending: Pending = {}
        self._entries = entries = entries_for(spec, self._load)
        self._repairs: set[bytes] = set()
        self._changed: SortedKeys | None = None
        self._dirty_in_order = 0
        self._mean_bytes = 64
        self.encode_key: Callable[[Any], bytes] = spec.key_serde.serialize
        """From a key to the bytes its value is kept under."""
        self.decode_key: Callable[[bytes], Any] = spec.key_serde.deserialize
        """From those bytes to the key."""
        # What operators call per record; see `Entries`.
        self.lookup: Callable[[bytes], Entry | None] = entries.lookup
        self.update: Callable[[bytes, Any, int], None] = entries.put
        self.borrow: Callable[[bytes], Entry | None] = entries.borrow
        self.give_back: Callable[[bytes, Any, int], None] = entries.give_back

    def _load(self, key: bytes) -> Serialized | None:
        stored = self.backend.get(key)
        return None if stored is None else split(stored)

    def scan(self, lower: bytes | None = None, upper: bytes | None = None) -> list[tuple[bytes, Any, int]]:
        """Key bytes, value and timestamp of all keys in ``[lower, upper)``, in byte order."""
        decode = self._entries.codec.decode
        found: dict[bytes, Entry] = {}
        for key, stored in self.backend.scan(lower, upper):
            data, timestamp = split(stored)
            found[key] = decode(data), timestamp
        for key in self._changed_keys(lower, upper):
            entry = self.lookup(key)
            if entry is None:
                found.pop(key, None)
            else:
                found[key] = entry
        return [(key, *found[key]) for key in sorted(found)]

    def _changed_keys(self, lower: bytes | None, upper: bytes | None) -> Iterator[bytes]:
        """The keys in a range that may differ from the backend; an index over them begins with the first scan
        after a commit, and each scan adds what was put since the last.
        """
        dirty = self._entries.dirty
        if self._changed is None:
            self._changed = SortedKeys(dirty.keys() | self.pending.keys())
        else:
            for key in islice(reversed(dirty), len(dirty) - self._dirty_in_order):
                self._changed.add(key)
        self._dirty_in_order = len(dirty)
        return self._changed.range(lower, upper)

    # -- commit

    @property
    def needs_drain(self) -> bool:
        """Whether anything changed since the last `drain`."""
        return bool(self._entries.dirty or self._repairs)

    @property
    def cache_bytes(self) -> int:
        """About what the cache takes in memory."""
        return len(self._entries) * (ENTRY_OVERHEAD_BYTES + OBJECT_FACTOR * self._mean_bytes)

    def drain(self) -> None:
        """Forward and serialize what changed into `pending`; see the module's text for what comes next."""
        self._drain_repairs()
        entries, pending, listener = self._entries, self.pending, self.listener
        dirty, entries.dirty = entries.dirty, {}
        self._changed = None
        total = 0
        changes: list[tuple[bytes, Any, int]] = []
        for key in dirty:
            data, value, timestamp = entries.flush(key, with_value=listener is not None)
            pending[key] = (data, timestamp)
            total += len(data or b"")
            if listener is not None:
                changes.append((key, value, timestamp))
        if dirty:
            self._mean_bytes = total // len(dirty)
        if listener is not None:  # once all is pending, because a listener may scan this very store
            for key, value, timestamp in changes:
                listener(key, value, timestamp)

    def _drain_repairs(self) -> None:
        """Repairs come first, so that even a commit that breaks off has them (see `runtime.restore`)."""
        for key in self._repairs:
            if key not in self.pending:
                stored = self.backend.get(key)
                self.pending[key] = (None, 0) if stored is None else split(stored)
        self._repairs.clear()

    def written(self, checkpoint: int | None, as_of: int | None = None) -> None:
        """Everything pending is in the changelog, up to offset `checkpoint`, and committed: write it down.

        ``as_of``: the wall clock, ms.
        """
        if self.pending or checkpoint != self.backend.checkpoint:
            updates = [
                (key, None if raw is None else TIMESTAMP.pack(timestamp) + raw)
                for key, (raw, timestamp) in self.pending.items()
            ]
            self.backend.write(updates, checkpoint, as_of)
            self.pending = {}
            self._changed = None

    def shrink(self) -> None:
        """Forget what the backend has: all but what changed since the last `drain`. Call after `written`."""
        assert not self.pending, "the backend has not got it yet"
        self._entries.keep_dirty()

    # -- restore

    def repair(self, keys: Iterable[bytes]) -> None:
        """Write these keys to the changelog again at the next commit: what it has last of them is void."""
        self._repairs.update(keys)

    def close(self) -> None:
        """Let the backend go; what was not committed is forgotten."""
        self.backend.close()


def split(stored: bytes) -> tuple[bytes, int]:
    """Value bytes and timestamp of a backend's value."""
    return stored[TIMESTAMP.size :], TIMESTAMP.unpack_from(stored)[0]


def join(value: bytes, timestamp: int) -> bytes:
    """A backend's value of value bytes and timestamp."""
    return TIMESTAMP.pack(timestamp) + value
