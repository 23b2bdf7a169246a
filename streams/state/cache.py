"""The write-back cache every store has: values as objects, serialized once per commit.

A commit of a store is three steps, told apart because the producer's acks lie in between:

1. `drain()`: what changed since the last commit is forwarded downstream (when the store is cached)
   and serialized into `pending`, which is what goes to the changelog;
2. the caller sends `pending`, waits for the acks and commits the source positions;
3. `written(offset)`: `pending` goes to the backend in one write, with the changelog offset.

A crash between any two leaves the backend as of the commit before.

Values live in the backend as Kafka Streams' timestamped stores keep them:

    int64 timestamp, ms | value bytes ...
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from streams.errors import SerializationError
from streams.state.backend import Backend
from streams.state.spec import StoreSpec

TIMESTAMP = struct.Struct(">q")

ENTRY_OVERHEAD_BYTES = 250
"""What a cached entry costs besides its value: dict slot, key object, tuple."""
OBJECT_FACTOR = 4
"""A value as Python objects takes about this many times its serialized size."""

Entry = tuple[Any, int]
"""A value (None: deleted) and its timestamp."""
Listener = Callable[[bytes, Any, int], None]
"""Hears of a changed key's bytes, its last value and timestamp, at each commit."""
Pending = dict[bytes, tuple[bytes | None, int]]
"""Key to serialized value (None: deleted) and timestamp."""

_UNKNOWN: Any = object()


class CachedStore:
    """Bytes-keyed entries over a backend; the typed stores and the operators stand on it."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        self.spec = spec
        self.name = spec.name
        self.backend = backend
        self.listener: Listener | None = None
        self.pending: Pending = {}
        self._entries: dict[bytes, Entry | None] = {}
        self._dirty: dict[bytes, None] = {}
        self._repairs: set[bytes] = set()
        self._serialize = spec.value_serde.serialize
        self._deserialize = spec.value_serde.deserialize
        self._mean_bytes = 64
        self.encode_key: Callable[[Any], bytes] = spec.key_serde.serialize
        """From a key to the bytes its value is kept under."""
        self.decode_key: Callable[[bytes], Any] = spec.key_serde.deserialize
        """From those bytes to the key."""

    # -- what operators call per record

    def lookup(self, key: bytes) -> Entry | None:
        """Return value and timestamp of a key, None if absent. The value is the cached object itself."""
        entry = self._entries.get(key, _UNKNOWN)
        if entry is _UNKNOWN:
            entry = self._entries[key] = self._load(key)
        return entry if entry is not None and entry[0] is not None else None

    def update(self, key: bytes, value: Any, timestamp: int) -> None:
        """Set a key (value None deletes it); serialized at the next commit."""
        self._entries[key] = (value, timestamp)
        self._dirty[key] = None

    def _load(self, key: bytes) -> Entry | None:
        stored = self.backend.get(key)
        return None if stored is None else self._decode(stored)

    def _decode(self, stored: bytes) -> Entry:
        data = stored[TIMESTAMP.size :]
        try:
            return self._deserialize(data), TIMESTAMP.unpack_from(stored)[0]
        except Exception as error:
            raise SerializationError(
                f"store {self.name} holds a value its serde does not read ({error}): was it written with "
                "another? Give the store another name, or reset the application",
                self.spec.changelog,
            ) from error

    def scan(self, lower: bytes | None = None, upper: bytes | None = None) -> list[tuple[bytes, Any, int]]:
        """Key bytes, value and timestamp of all keys in ``[lower, upper)``, in byte order."""
        found: dict[bytes, Entry] = {key: self._decode(raw) for key, raw in self.backend.scan(lower, upper)}
        for key in self._dirty.keys() | self.pending.keys():
            if (lower is None or key >= lower) and (upper is None or key < upper):
                entry = self.lookup(key)
                if entry is None:
                    found.pop(key, None)
                else:
                    found[key] = entry
        return [(key, *found[key]) for key in sorted(found)]

    # -- commit

    @property
    def needs_drain(self) -> bool:
        """Whether anything changed since the last `drain`."""
        return bool(self._dirty or self._repairs)

    @property
    def cache_bytes(self) -> int:
        """About what the cache takes in memory."""
        return len(self._entries) * (ENTRY_OVERHEAD_BYTES + OBJECT_FACTOR * self._mean_bytes)

    def drain(self) -> None:
        """Forward and serialize what changed into `pending`; see the module's text for what comes next."""
        self._drain_repairs()
        dirty, self._dirty = self._dirty, {}
        entries, pending, serialize, listener = self._entries, self.pending, self._serialize, self.listener
        total = 0
        for key in dirty:
            value, timestamp = entries[key] or (None, 0)
            try:
                raw = None if value is None else serialize(value)
            except Exception as error:
                raise SerializationError(
                    f"store {self.name} cannot keep {value!r} under key {key!r}: {error}", self.spec.changelog
                ) from error
            pending[key] = (raw, timestamp)
            total += len(raw or b"")
            if listener is not None:
                listener(key, value, timestamp)
        if dirty:
            self._mean_bytes = total // len(dirty)

    def _drain_repairs(self) -> None:
        """Repairs come first, so that even a commit that breaks off has them (see `runtime.restore`)."""
        for key in self._repairs:
            if key not in self.pending:
                stored = self.backend.get(key)
                self.pending[key] = (None, 0) if stored is None else split(stored)
        self._repairs.clear()

    def written(self, checkpoint: int | None) -> None:
        """Everything pending is safe in the changelog, up to offset `checkpoint`: write it down."""
        if self.pending or checkpoint != self.backend.checkpoint:
            updates = [
                (key, None if raw is None else TIMESTAMP.pack(timestamp) + raw)
                for key, (raw, timestamp) in self.pending.items()
            ]
            self.backend.write(updates, checkpoint)
            self.pending = {}

    def shrink(self) -> None:
        """Forget what the backend has; call after `written`."""
        if not self._dirty:
            self._entries.clear()

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
