"""The write-back cache of every store: changes stay in memory until the commit.

A commit of a store takes three steps, because the producer's acks come in between:

1. `drain()` serializes the changes since the last commit into `pending`. A cached store also forwards them
   downstream.
2. The caller sends `pending` to the changelog, waits for the acks and commits the source positions.
3. `written(offset)` writes `pending` to the backend in one write, with the changelog offset.

Records are processed between 1 and 3 as well. Their changes are part of the next commit, and `pending` can
still be read through the cache until the backend has it. The next `drain` is after `written`.

A crash between any two steps leaves the backend as of the previous commit. `streams.state.entries` says who
may change a value that is in the cache.

Values live in the backend as Kafka Streams' timestamped stores keep them:

    int64 timestamp, ms | value bytes ...
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from kafka_client.records import Headers
from streams.state.backend import Backend
from streams.state.entries import (
    Add,
    Changed,
    Entry,
    Folding,
    Pending,
    Serialized,
    ValueEntries,
    entries_for,
)
from streams.state.sorted_keys import SortedKeys
from streams.state.spec import StoreSpec

TIMESTAMP = struct.Struct(">q")

ENTRY_OVERHEAD_BYTES = 250
"""Memory of a cached entry besides its value: dict slot, key object, tuple."""
OBJECT_FACTOR = 4
"""A value as Python objects takes about this many times its serialized size."""

Listener = Callable[[list[Changed]], None]
"""Receives the changes at each commit."""


class Update(Protocol):
    """Sets a key's value and timestamp; the headers of the record are passed to the listener."""

    def __call__(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None: ...


class Unwritten(Protocol):
    """An operator's changes to a store that the operator itself holds until the next commit."""

    @property
    def unwritten_keys(self) -> int:
        """The number of changed keys."""
        ...

    def write(self) -> None:
        """Put the changes into the store."""


class CachedStore:
    """Entries by key bytes over a backend: the base of the typed stores, and what operators use."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        self.spec = spec
        self.name = spec.name
        self.backend = backend
        self.listener: Listener | None = None
        self.tells_old_values = False
        """True if the listener needs each key's previous value."""
        self.is_table = False
        """True for a table's store: a deletion is dropped if the key had no value at the last `drain`."""
        self.unwritten: Unwritten | None = None
        """Changes that an operator holds; each `drain` first has them written to the store."""
        self.pending: Pending = {}
        self.pending_new: set[bytes] = set()
        """The keys of `pending` that the backend is known not to have, without reading it."""
        self._entries = entries = entries_for(spec, self._load)
        self._repairs: set[bytes] = set()
        self._changed: SortedKeys | None = None
        self._indexed = 0
        self._mean_bytes = 64
        self.encode_key: Callable[[Any], bytes] = spec.key_serde.serialize
        """Converts a key to the bytes under which its value is stored."""
        self.decode_key: Callable[[bytes], Any] = spec.key_serde.deserialize
        """Converts stored key bytes to the key."""
        # Operators call these per record; see `Entries`.
        self.lookup: Callable[[bytes], Entry | None] = entries.lookup
        self.update: Update = entries.put
        self.borrow: Callable[[bytes], Entry | None] = entries.borrow
        self.give_back: Update = entries.give_back

    def folding(self, add: Add, *, counts: bool = False) -> Folding | None:
        """Return an aggregation over the store's values, or None if they may be changed in place."""
        entries = self._entries
        return Folding(entries, add, counts=counts) if isinstance(entries, ValueEntries) else None

    def _load(self, key: bytes) -> Serialized | None:
        stored = self.backend.get(key)
        return None if stored is None else split(stored)

    def scan(self, lower: bytes | None = None, upper: bytes | None = None) -> list[tuple[bytes, Any, int]]:
        """Return key bytes, value and timestamp of all keys in ``[lower, upper)``, in byte order."""
        decode = self._entries.codec.decode
        rows: dict[bytes, Entry] = {}
        for key, stored in self.backend.scan(lower, upper):
            data, timestamp = split(stored)
            rows[key] = decode(data), timestamp
        for key in self._changed_keys(lower, upper):
            entry = self.lookup(key)
            if entry is None:
                rows.pop(key, None)
            else:
                rows[key] = entry
        return [(key, *rows[key]) for key in sorted(rows)]

    @property
    def reader(self) -> Callable[[bytes], Entry | None]:
        """The lookup of operators that read the store as a table: windows past retention are absent."""
        return self.lookup

    def timestamp(self, key: bytes) -> int | None:
        """Return the timestamp (ms) of the key's value, None if the key is absent."""
        return self._entries.timestamp(key)

    def peek(self, key: bytes) -> Entry | None:
        """Look up a key for a query; unlike `lookup`, keep nothing in memory that was not there before."""
        if key in self._entries:
            return self._entries.lookup(key)
        stored = self.backend.get(key)
        return None if stored is None else self._decoded(stored)

    def rows(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, Any, int, int]]:
        """Yield the rows of `scan` one by one, each with its approximate size in bytes.

        ``backwards``: from the last key to the first. The store must not change during the iteration.
        """
        # A key's changed entry sorts before its stored one.
        first, second = (1, 0) if backwards else (0, 1)
        changed = ((key, first, b"") for key in self._changed_keys(lower, upper, backwards=backwards))
        pairs = self.backend.scan(lower, upper, backwards=backwards)
        stored = ((key, second, data) for key, data in pairs)
        last: bytes | None = None
        for key, which, data in heapq.merge(changed, stored, reverse=backwards):
            if key == last:
                continue  # It has changed since it was stored.
            last = key
            entry = self._decoded(data) if which == second else self._entries.lookup(key)
            if entry is not None:
                yield key, *entry, len(key) + (len(data) or self._mean_bytes)

    def approximate_num_entries(self) -> int:
        """Return RocksDB's estimate of the number of committed keys; a store in memory counts them."""
        estimate = self.backend.properties().get("estimate-num-keys")
        return sum(1 for _ in self.backend.scan()) if estimate is None else int(estimate)

    def put_new(self, key: bytes, value: Any, timestamp: int) -> None:
        """Set a key that the caller knows to be absent, without reading the backend."""
        self._entries.set_absent(key)
        self.update(key, value, timestamp)

    def withdraw(self, key: bytes, timestamp: int) -> None:
        """Delete a key. One that was added after the last `drain` leaves no trace in changelog or backend."""
        entries = self._entries
        if key not in entries.new or key not in entries.dirty:
            self.update(key, None, timestamp)
            return
        entries.forget(key)
        if key in self.pending:  # Its deletion is pending: the backend still has the key.
            entries.set_absent(key)
        self._changed = None

    def _decoded(self, stored: bytes) -> Entry:
        data, timestamp = split(stored)
        return self._entries.codec.decode(data), timestamp

    def _changed_keys(
        self, lower: bytes | None, upper: bytes | None, *, backwards: bool = False
    ) -> Iterator[bytes]:
        """Iterate over the keys in a range that may differ from the backend, in byte order.

        The first scan after a commit builds an index over them; later scans add the keys put since.
        """
        changed = self._entries.first_changed
        if self._changed is None:
            self._changed = SortedKeys(self._entries.dirty.keys() | self.pending.keys())
        else:
            for key in changed[self._indexed :]:
                self._changed.add(key)
        self._indexed = len(changed)
        return self._changed.range(lower, upper, backwards=backwards)

    # -- time

    def clocks(self) -> Mapping[str, int]:
        """Return the stream times (ms) to commit, by the store's name with a suffix for each further one."""
        return {}

    def set_clocks(self, times: Mapping[str, int]) -> None:
        """Set the stream times to those of the last commit."""

    # -- commit

    @property
    def needs_drain(self) -> bool:
        """True if anything changed since the last `drain`."""
        return bool(self._entries.dirty or self._repairs or self._unwritten_keys)

    @property
    def _unwritten_keys(self) -> int:
        return 0 if self.unwritten is None else self.unwritten.unwritten_keys

    @property
    def cache_bytes(self) -> int:
        """The approximate memory of the cache."""
        return (len(self._entries) + self._unwritten_keys) * (
            ENTRY_OVERHEAD_BYTES + OBJECT_FACTOR * self._mean_bytes
        )

    def drain(self) -> None:
        """Serialize the changes into `pending` and tell the listener; the module says what follows."""
        if self.unwritten is not None:
            self.unwritten.write()
        self._drain_repairs()
        dirty, new = self._entries.take_dirty()
        self._changed = None
        changes = self._add_to_pending(dirty, new)
        if self.listener is not None:  # once all is pending, because a listener may scan this very store
            self.listener(changes)

    def _add_to_pending(self, dirty: dict[bytes, Headers], new: set[bytes]) -> list[Changed]:
        """Add the changed keys to `pending`; return the changes for the listener, if there is one."""
        pending, changes = self.pending, list[Changed]()
        if pending:
            self.pending_new |= new - pending.keys()
        else:
            self.pending_new = new  # nobody else holds the set
        size = self._entries.flush(
            dirty,
            new,
            pending,
            changes=None if self.listener is None else changes,
            # A deleted key without an earlier value is in neither the changelog nor any table downstream.
            had_value=self._is_drained if self.is_table else None,
            old_value=self._drained_value if self.tells_old_values else None,
        )
        if dirty:
            self._mean_bytes = size // len(dirty)
        return changes

    def _is_drained(self, key: bytes) -> bool:
        """Return True if a key had a value after the last `drain`."""
        return self._drained(key) is not None

    def _drained(self, key: bytes) -> bytes | None:
        """Return the bytes of a key's value after the last `drain`, None if it had none."""
        serialized = self.pending[key] if key in self.pending else self._load(key)
        return None if serialized is None else serialized[0]

    def _drained_value(self, key: bytes) -> Any:
        """Return the value of a key after the last `drain`, None if it had none."""
        data = self._drained(key)
        if data is not None:
            return self._entries.codec.decode(data)
        if key not in self.pending:
            self.pending_new.add(key)  # The backend was read: the key is not in it.
        return None

    def _drain_repairs(self) -> None:
        """Add the keys to repair to `pending`, before all others.

        So even a commit that breaks off has them (see `runtime.restore`).
        """
        for key in self._repairs:
            if key not in self.pending:
                stored = self.backend.get(key)
                self.pending[key] = (None, 0) if stored is None else split(stored)
        self._repairs.clear()

    def written(self, checkpoint: int | None, as_of: int | None = None) -> None:
        """Write `pending` to the backend, once it is committed and in the changelog up to ``checkpoint``.

        ``as_of``: the wall clock, ms.
        """
        if self.pending or checkpoint != self.backend.checkpoint:
            updates = [
                (key, None if raw is None else TIMESTAMP.pack(timestamp) + raw)
                for key, (raw, timestamp) in self.pending.items()
            ]
            self.backend.write(updates, checkpoint, as_of)
            self.pending, self.pending_new = {}, set()
            self._changed = None

    def shrink(self) -> None:
        """Drop all entries from memory but those changed since the last `drain`. Call after `written`."""
        assert not self.pending, "the backend has not got it yet"
        self._entries.keep_dirty()

    @property
    def needed_from(self) -> int | None:
        """The first changelog offset the store still needs; None if unknown: the topic is only compacted."""
        return None

    # -- restore

    def restored(self) -> None:
        """Adjust the store after a restore has written to its backend; here there is nothing to do."""

    def repair(self, keys: Iterable[bytes]) -> None:
        """Have the next commit write these keys to the changelog again: its last records of them are void."""
        self._repairs.update(keys)

    def close(self) -> None:
        """Close the backend; changes that were not committed are lost."""
        self.backend.close()


def split(stored: bytes) -> tuple[bytes, int]:
    """Split a backend's value into value bytes and timestamp."""
    return stored[TIMESTAMP.size :], TIMESTAMP.unpack_from(stored)[0]


def join(value: bytes, timestamp: int) -> bytes:
    """Build a backend's value from value bytes and timestamp."""
    return TIMESTAMP.pack(timestamp) + value
