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
"""What a cached entry costs besides its value: dict slot, key object, tuple."""
OBJECT_FACTOR = 4
"""A value as Python objects takes about this many times its serialized size."""

Listener = Callable[[list[Changed]], None]
"""Hears at each commit of what changed."""


class Update(Protocol):
    """Sets a key's value and timestamp; the headers of its record go on to a listener."""

    def __call__(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None: ...


class Unwritten(Protocol):
    """What an operator keeps to itself between commits, of what it keeps in a store."""

    @property
    def unwritten_keys(self) -> int:
        """How many keys."""
        ...

    def write(self) -> None:
        """Put it in the store."""


class CachedStore:
    """Bytes-keyed entries over a backend; the typed stores and the operators stand on it."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        self.spec = spec
        self.name = spec.name
        self.backend = backend
        self.listener: Listener | None = None
        self.tells_old_values = False
        """Whether the listener wants to know what a key had before."""
        self.is_table = False
        """Whether a table is kept here: deletions of keys that it never told of go unsaid."""
        self.unwritten: Unwritten | None = None
        """Comes to the store when it is drained."""
        self.pending: Pending = {}
        self.pending_new: set[bytes] = set()
        """Those of `pending` that the backend does not have, as far as that is known without asking it."""
        self._entries = entries = entries_for(spec, self._load)
        self._repairs: set[bytes] = set()
        self._changed: SortedKeys | None = None
        self._indexed = 0
        self._mean_bytes = 64
        self.encode_key: Callable[[Any], bytes] = spec.key_serde.serialize
        """From a key to the bytes its value is kept under."""
        self.decode_key: Callable[[bytes], Any] = spec.key_serde.deserialize
        """From those bytes to the key."""
        # What operators call per record; see `Entries`.
        self.lookup: Callable[[bytes], Entry | None] = entries.lookup
        self.update: Update = entries.put
        self.borrow: Callable[[bytes], Entry | None] = entries.borrow
        self.give_back: Update = entries.give_back

    def folding(self, add: Add, *, counts: bool = False) -> Folding | None:
        """An aggregation over the store's values; None where they may be changed in place."""
        entries = self._entries
        return Folding(entries, add, counts=counts) if isinstance(entries, ValueEntries) else None

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

    @property
    def reader(self) -> Callable[[bytes], Entry | None]:
        """Look up for operators that read the store as a table: windows past retention are absent."""
        return self.lookup

    def timestamp(self, key: bytes) -> int | None:
        """As of when (ms) the key's value is, None if it is absent."""
        return self._entries.timestamp(key)

    def peek(self, key: bytes) -> Entry | None:
        """As `lookup`, for who asks from outside: what is not in memory is not kept there."""
        if key in self._entries:
            return self._entries.lookup(key)
        stored = self.backend.get(key)
        return None if stored is None else self._decoded(stored)

    def rows(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, Any, int, int]]:
        """As `scan`, one after the other, with about how many bytes each is, or from the last to the first:
        nothing may change until who iterates has enough.
        """
        # Of one key, what changed comes first.
        first, second = (1, 0) if backwards else (0, 1)
        changed = ((key, first, b"") for key in self._changed_keys(lower, upper, backwards=backwards))
        found = self.backend.scan(lower, upper, backwards=backwards)
        stored = ((key, second, data) for key, data in found)
        last: bytes | None = None
        for key, which, data in heapq.merge(changed, stored, reverse=backwards):
            if key == last:
                continue  # It has changed since it was stored.
            last = key
            entry = self._decoded(data) if which == second else self._entries.lookup(key)
            if entry is not None:
                yield key, *entry, len(key) + (len(data) or self._mean_bytes)

    def approximate_num_entries(self) -> int:
        """About how many keys are on the disk, as RocksDB estimates, or in a store in memory; without what
        was not committed.
        """
        estimate = self.backend.properties().get("estimate-num-keys")
        return sum(1 for _ in self.backend.scan()) if estimate is None else int(estimate)

    def put_new(self, key: bytes, value: Any, timestamp: int) -> None:
        """As `update`, of a key that the caller knows to be absent: nobody asks the backend."""
        self._entries.set_absent(key)
        self.update(key, value, timestamp)

    def withdraw(self, key: bytes, timestamp: int) -> None:
        """Delete a key; of one that came after the last `drain` neither changelog nor backend ever hear."""
        entries = self._entries
        if key not in entries.new or key not in entries.dirty:
            self.update(key, None, timestamp)
            return
        entries.forget(key)
        if key in self.pending:  # Deleted, and the backend has it still.
            entries.set_absent(key)
        self._changed = None

    def _decoded(self, stored: bytes) -> Entry:
        data, timestamp = split(stored)
        return self._entries.codec.decode(data), timestamp

    def _changed_keys(
        self, lower: bytes | None, upper: bytes | None, *, backwards: bool = False
    ) -> Iterator[bytes]:
        """The keys in a range that may differ from the backend; an index over them begins with the first scan
        after a commit, and each scan adds what was put since the last.
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
        """The stream times (ms) that outlive the process, by the store's name and what is put behind it."""
        return {}

    def set_clocks(self, times: Mapping[str, int]) -> None:
        """Go on from the times of a commit."""

    # -- commit

    @property
    def needs_drain(self) -> bool:
        """Whether anything changed since the last `drain`."""
        return bool(self._entries.dirty or self._repairs or self._unwritten_keys)

    @property
    def _unwritten_keys(self) -> int:
        return 0 if self.unwritten is None else self.unwritten.unwritten_keys

    @property
    def cache_bytes(self) -> int:
        """About what the cache takes in memory."""
        return (len(self._entries) + self._unwritten_keys) * (
            ENTRY_OVERHEAD_BYTES + OBJECT_FACTOR * self._mean_bytes
        )

    def drain(self) -> None:
        """Forward and serialize what changed into `pending`; see the module's text for what comes next."""
        if self.unwritten is not None:
            self.unwritten.write()
        self._drain_repairs()
        dirty, new = self._entries.take_dirty()
        self._changed = None
        changes = self._taken(dirty, new)
        if self.listener is not None:  # once all is pending, because a listener may scan this very store
            self.listener(changes)

    def _taken(self, dirty: dict[bytes, Headers], new: set[bytes]) -> list[Changed]:
        """Bring what changed into `pending`; what the listener is to hear of it."""
        pending, changes = self.pending, list[Changed]()
        if pending:
            self.pending_new |= new - pending.keys()
        else:
            self.pending_new = new  # nobody else has the set
        size = self._entries.flush(
            dirty,
            new,
            pending,
            changes=None if self.listener is None else changes,
            # Deleted, and never told of: neither the changelog nor anybody else has it.
            is_told=self._is_drained if self.is_table else None,
            old_value=self._drained_value if self.tells_old_values else None,
        )
        if dirty:
            self._mean_bytes = size // len(dirty)
        return changes

    def _is_drained(self, key: bytes) -> bool:
        """Return True if a key had a value after the last `drain`."""
        return self._drained(key) is not None

    def _drained(self, key: bytes) -> bytes | None:
        """The bytes a key had after the last `drain`."""
        found = self.pending[key] if key in self.pending else self._load(key)
        return None if found is None else found[0]

    def _drained_value(self, key: bytes) -> Any:
        """The value a key had after the last `drain`."""
        data = self._drained(key)
        if data is not None:
            return self._entries.codec.decode(data)
        if key not in self.pending:
            self.pending_new.add(key)  # The backend was asked.
        return None

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
            self.pending, self.pending_new = {}, set()
            self._changed = None

    def shrink(self) -> None:
        """Forget what the backend has: all but what changed since the last `drain`. Call after `written`."""
        assert not self.pending, "the backend has not got it yet"
        self._entries.keep_dirty()

    @property
    def needed_from(self) -> int | None:
        """The changelog's records before this offset are of nothing that is kept; None: of what is compacted
        alone that is not known.
        """
        return None

    # -- restore

    def restored(self) -> None:
        """What the backend was given last came from the changelog, not by a commit from here."""

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
