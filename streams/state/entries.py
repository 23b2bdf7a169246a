"""The entries of a store that are in memory, protected from changes from outside.

A Python object can be changed in place by everybody who holds it: the next operator, a joiner, another store.
Such a change must not reach the store. So a store whose serde makes immutable values keeps the values
themselves (`ValueEntries`). Any other store keeps their bytes (`SerializedEntries`): `put` serializes the
value, and each lookup makes a new one.

An aggregation saves the serialization per record: it may `borrow` the value, change it in place and
`give_back` that very object, which is serialized once per commit.

This module is compiled by Cython. It also runs as plain Python, only slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

try:
    from kafka_client import without_cython as cython
except ModuleNotFoundError:
    import cython  # type: ignore[no-redef]  # never run: it tells Cython that the name is its own

from kafka_client.records import Headers
from streams.errors import SerializationError
from streams.state.spec import StoreSpec

Key: TypeAlias = bytes
"""A key's bytes. By this name Cython does not check the type, which a subclass of `bytes` would not pass."""
Entry = tuple[Any, int]
"""A value (None: deleted) and its timestamp."""
Serialized = tuple[bytes | None, int]
"""A value's bytes (None: deleted) and its timestamp."""
Pending = dict[bytes, Serialized]
"""Key to serialized value (None: deleted) and timestamp."""
Changed = tuple[bytes, Any, Any, int, Headers]
"""A changed key: its bytes, value, previous value, and timestamp and headers of the last change.

The previous value is that of the last commit, None if the listener does not need it.
"""
Add = Callable[[Any, Any, Any], Any]
"""Returns the new aggregate of a group's key, a record's value and the old aggregate."""
Fold = Callable[[bytes, Any, Any, Any, int, Headers], None]
"""Takes stored key bytes, the key to forward (unused by `Folding`), and a record's group key, value,
timestamp and headers.
"""
Load = Callable[[bytes], "Serialized | None"]
"""Reads a key's bytes and timestamp from the backend."""

FORGOTTEN_MAX = 1000
"""The list of changed keys is rebuilt when forgotten keys outnumber the others by more than this."""

_UNKNOWN: Any = object()


@cython.cfunc
def _is_absent(entry: Any) -> cython.bint:
    """Return True if an entry says that the key has no value; `_UNKNOWN` does not say so."""
    return entry is None or (entry is not _UNKNOWN and entry[0] is None)


class Codec:
    """The conversion of a store's values to bytes and back; its errors name the store."""

    def __init__(self, spec: StoreSpec) -> None:
        self._name = spec.name
        self._changelog = spec.changelog
        self.serialize: Callable[[Any], bytes] = spec.value_serde.serialize
        """The serde's own method; `encode` has its errors name the store."""
        self._deserialize = spec.value_serde.deserialize

    def encode(self, key: Key, value: Any) -> bytes:
        """Return the bytes of a value. Raises SerializationError if the serde does not accept the value."""
        try:
            return self.serialize(value)
        except Exception as error:
            raise self.refusal(key, value, error) from error

    def refusal(self, key: Key, value: Any, error: Exception) -> SerializationError:
        """Return the error to raise in place of one that `serialize` raised."""
        return SerializationError(
            f"store {self._name} cannot keep {value!r} under key {key!r}: {error}", self._changelog
        )

    def decode(self, data: bytes) -> Any:
        """Return the value of the bytes. Raises SerializationError if the serde cannot read them."""
        try:
            return self._deserialize(data)
        except Exception as error:
            raise SerializationError(
                f"store {self._name} holds a value its serde does not read ({error}): was it written with "
                "another? Give the store another name, or reset the application",
                self._changelog,
            ) from error


@cython.cclass
class Entries:
    """Entries by key: `ValueEntries` or `SerializedEntries`."""

    _codec: Any
    _dirty: dict[bytes, Headers]
    _first_changed: list[bytes]
    _new: set[bytes]
    _load: Any

    def __init__(self, codec: Codec, load: Load) -> None:
        self._codec = codec
        self._dirty = {}
        self._first_changed = []
        self._new = set()
        self._load = load

    @property
    def codec(self) -> Codec:
        """The codec that turns values into bytes and back."""
        codec: Codec = self._codec
        return codec

    @property
    def dirty(self) -> dict[bytes, Headers]:
        """The keys changed since the last flush, in the order of their last changes.

        Each has the headers of the record that changed the key last.
        """
        return self._dirty

    @property
    def first_changed(self) -> list[bytes]:
        """The dirty keys in the order of their first changes."""
        return self._first_changed

    @property
    def new(self) -> set[bytes]:
        """The dirty keys that were absent at the last flush, as far as known without reading the backend."""
        return self._new

    def take_dirty(self) -> tuple[dict[bytes, Headers], set[bytes]]:
        """Return the dirty keys and the new ones among them, and mark all keys clean; then call `flush`."""
        dirty, new = self._dirty, self._new
        self._dirty, self._first_changed, self._new = {}, [], set()
        return dirty, new

    def lookup(self, key: Key) -> Entry | None:
        """Return value and timestamp of a key, None if absent. The caller may change the value."""
        raise NotImplementedError

    def timestamp(self, key: Key) -> int | None:
        """Return the timestamp of a key's value, None if absent, without decoding the value."""
        raise NotImplementedError

    def borrow(self, key: Key) -> Entry | None:
        """Return value and timestamp of a key, None if absent, for a caller who may `give_back` the value."""
        raise NotImplementedError

    def put(self, key: Key, value: Any, timestamp: int, headers: Headers = ()) -> None:
        """Set a key (value None deletes it). Changing the value afterwards does not change the entry."""
        raise NotImplementedError

    def give_back(self, key: Key, value: Any, timestamp: int, headers: Headers = ()) -> None:
        """Set a key to the borrowed object, changed in place; nobody else may hold it or a part of it."""
        raise NotImplementedError

    def flush(
        self,
        dirty: dict[bytes, Headers],
        new: set[bytes],
        pending: Pending,
        *,
        changes: list[Changed] | None,
        had_value: Callable[[bytes], bool] | None,
        old_value: Callable[[bytes], Any] | None,
    ) -> int:
        """Add the keys from `take_dirty` to ``pending``, and to the list ``changes`` if there is one.

        Returns the size of all values, in bytes. ``had_value``: if set, deleted keys are left out if they are
        new or it returns False for them. ``old_value``: returns a key's previous value for ``changes``; it is
        not called for new keys.
        """
        size: cython.Py_ssize_t = 0
        with_values: cython.bint = changes is not None
        for key, headers in dirty.items():
            data, value, timestamp = self._flushed(key, with_values)
            is_new: cython.bint = key in new
            if data is None and had_value is not None and (is_new or not had_value(key)):
                continue
            if changes is not None:
                old = None if is_new or old_value is None else old_value(key)
                changes.append((key, value, old, timestamp, headers))
            pending[key] = (data, timestamp)
            if data is not None:
                size += len(data)
        return size

    def protected(self, key: Key, value: Any) -> Any:
        """Return a form of a value that changes to the value do not reach, for `put_protected`."""
        return value

    def exposed(self, safe_value: Any) -> Any:
        """Return the value of its `protected` form; the caller may change the value."""
        return safe_value

    def put_protected(self, key: Key, safe_value: Any, timestamp: int) -> None:
        """Set a key to the value of a `protected` form."""
        self.put(key, safe_value, timestamp)

    @cython.cfunc
    def _flushed(self, key: Key, with_value: cython.bint) -> Any:
        """Return a key's bytes, value and timestamp; the value may be None unless ``with_value``."""
        raise NotImplementedError

    def set_absent(self, key: Key) -> None:
        """Mark a key as absent without making it dirty."""
        raise NotImplementedError

    def forget(self, key: Key) -> None:
        """Undo all changes since the last flush to a key that was absent at that flush."""
        self._dirty.pop(key, None)
        if len(self._first_changed) > 2 * len(self._dirty) + FORGOTTEN_MAX:
            self._first_changed = list(self._dirty)
            self._new.intersection_update(self._dirty)

    def keep_dirty(self) -> None:
        """Drop all entries but the dirty ones."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __contains__(self, key: object) -> bool:
        """Return True if the key is in memory, even if marked as absent."""
        raise NotImplementedError


@cython.cclass
class ValueEntries(Entries):
    """Entries with immutable values, kept as they are."""

    _entries: dict[bytes, Entry | None]

    def __init__(self, codec: Codec, load: Load) -> None:
        super().__init__(codec, load)
        self._entries = {}

    def lookup(self, key: Key) -> Entry | None:
        entry: Entry | None = self._lookup(key)
        return entry

    @cython.cfunc
    def _lookup(self, key: Key) -> Any:
        entry: Any = self._entries.get(key, _UNKNOWN)
        if entry is _UNKNOWN:
            entry = self._entries[key] = self._loaded(key)
        return entry if entry is not None and entry[0] is not None else None

    @cython.cfunc
    def _loaded(self, key: Key) -> Any:
        stored = self._load(key)
        return None if stored is None else (self._codec.decode(stored[0]), stored[1])

    def borrow(self, key: Key) -> Entry | None:
        entry: Entry | None = self._lookup(key)
        return entry

    def timestamp(self, key: Key) -> int | None:
        entry = self._lookup(key)
        return None if entry is None else entry[1]

    def put(self, key: Key, value: Any, timestamp: int, headers: Headers = ()) -> None:
        self._put(key, value, timestamp, headers)

    def give_back(self, key: Key, value: Any, timestamp: int, headers: Headers = ()) -> None:
        self._put(key, value, timestamp, headers)

    @cython.cfunc
    def _put(self, key: Key, value: Any, timestamp: Any, headers: Any) -> Any:
        dirty: dict[bytes, Headers] = self._dirty
        if dirty.pop(key, None) is None:  # the last change decides the order, as in Kafka's cache
            self._first_changed.append(key)
            if _is_absent(self._entries.get(key, _UNKNOWN)):
                self._new.add(key)
        dirty[key] = headers
        self._entries[key] = (value, timestamp)

    @cython.cfunc
    def _flushed(self, key: Key, with_value: cython.bint) -> Any:
        entry: Any = self._entries[key]
        if entry is None or entry[0] is None:
            return None, None, 0 if entry is None else entry[1]
        try:
            return self._codec.serialize(entry[0]), entry[0], entry[1]
        except Exception as error:
            raise self._codec.refusal(key, entry[0], error) from error

    def set_absent(self, key: Key) -> None:
        self._entries[key] = None

    def forget(self, key: Key) -> None:
        self._entries.pop(key, None)
        Entries.forget(self, key)

    def keep_dirty(self) -> None:
        entries = self._entries
        self._entries = {key: entries[key] for key in self._dirty}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries


@cython.cclass
class Folding:
    """An aggregation over the values of a store: `lookup` and `put` in one, which is all it does per record.

    A key is set to ``add(of, value, old)``, where ``old`` is None if the key is absent. The later of both
    timestamps is kept. ``counts``: the new value is one more than ``old``, and ``add`` is not called.
    """

    _store: ValueEntries
    _add: Any
    _counts: cython.bint

    def __init__(self, entries: ValueEntries, add: Add, *, counts: bool) -> None:
        self._store = entries
        self._add = add
        self._counts = counts

    def add(self, key: Key, forwarded: Any, of: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Add a record to one key: a `Fold`."""
        self._fold(key, of, value, timestamp, headers)

    def add_to_each(
        self, begin: Key, ends: list[bytes], of: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        """Add a record to all keys that begin with ``begin`` and end with one of ``ends``."""
        for end in ends:
            self._fold(begin + end, of, value, timestamp, headers)

    @cython.cfunc
    def _fold(self, key: Key, of: Any, value: Any, timestamp: Any, headers: Any) -> Any:
        store: ValueEntries = self._store
        entry: Any = store._entries.get(key, _UNKNOWN)
        old: Any = None
        if entry is _UNKNOWN:
            entry = store._loaded(key)
        if entry is not None:
            old = entry[0]
        if not self._counts:
            new = self._add(of, value, old)
        else:
            new = 1 if old is None else old + 1
        if old is not None and new is not None and entry[1] > timestamp:
            timestamp = entry[1]
        dirty: dict[bytes, Headers] = store._dirty
        if dirty.pop(key, None) is None:
            store._first_changed.append(key)
            if old is None:
                store._new.add(key)
        dirty[key] = headers
        store._entries[key] = (new, timestamp)


@cython.cclass
class SerializedEntries(Entries):
    """Entries with values as bytes, except those that were given back and not looked up since."""

    _entries: dict[bytes, Serialized | None]
    _given_back: dict[bytes, Entry]

    def __init__(self, codec: Codec, load: Load) -> None:
        super().__init__(codec, load)
        self._entries = {}
        self._given_back = {}

    def lookup(self, key: Key) -> Entry | None:
        if key in self._given_back:
            self._serialize(key)
        entry = self._serialized(key)
        if entry is None or entry[0] is None:
            return None
        return self._codec.decode(entry[0]), entry[1]

    def _serialized(self, key: Key) -> Serialized | None:
        entry = self._entries.get(key, _UNKNOWN)
        if entry is _UNKNOWN:
            entry = self._entries[key] = self._load(key)
        return entry  # type: ignore[no-any-return]

    def timestamp(self, key: Key) -> int | None:
        entry = self._given_back.get(key) or self._serialized(key)
        return None if entry is None or entry[0] is None else entry[1]

    def borrow(self, key: Key) -> Entry | None:
        return self._given_back.get(key) or self.lookup(key)

    def put(self, key: Key, value: Any, timestamp: int, headers: Headers = ()) -> None:
        data = None if value is None else self._codec.encode(key, value)
        self._mark(key, headers)
        self._entries[key] = (data, timestamp)
        self._given_back.pop(key, None)

    def give_back(self, key: Key, value: Any, timestamp: int, headers: Headers = ()) -> None:
        self._mark(key, headers)
        self._given_back[key] = (value, timestamp)

    def protected(self, key: Key, value: Any) -> Any:
        return self._codec.encode(key, value)

    def exposed(self, safe_value: Any) -> Any:
        return self._codec.decode(safe_value)

    def put_protected(self, key: Key, safe_value: Any, timestamp: int) -> None:
        self._mark(key, ())
        self._entries[key] = (safe_value, timestamp)
        self._given_back.pop(key, None)

    def _mark(self, key: Key, headers: Headers) -> None:
        """Note that a key is about to change. The last change decides its place, as in Kafka's cache."""
        if self._dirty.pop(key, None) is None:
            self._first_changed.append(key)
            if _is_absent(self._entries.get(key, _UNKNOWN)):
                self._new.add(key)
        self._dirty[key] = headers

    def _serialize(self, key: Key) -> Any:
        """Replace a value that was given back by its bytes; return the value."""
        value, timestamp = self._given_back.pop(key)
        self._entries[key] = (self._codec.encode(key, value), timestamp)
        return value

    @cython.cfunc
    def _flushed(self, key: Key, with_value: cython.bint) -> Any:
        value = self._serialize(key) if key in self._given_back else None
        data, timestamp = self._entries[key] or (None, 0)
        if with_value and value is None and data is not None:
            value = self._codec.decode(data)
        return data, value, timestamp

    def set_absent(self, key: Key) -> None:
        self._given_back.pop(key, None)
        self._entries[key] = None

    def forget(self, key: Key) -> None:
        self._given_back.pop(key, None)
        self._entries.pop(key, None)
        Entries.forget(self, key)

    def keep_dirty(self) -> None:
        # A value that was given back is dirty, and was borrowed before, so its key is among the entries.
        entries = self._entries
        self._entries = {key: entries[key] for key in self._dirty}

    def __len__(self) -> int:
        return len(self._entries)  # a value given back was borrowed before, so its key is counted

    def __contains__(self, key: object) -> bool:
        return key in self._entries


def entries_for(spec: StoreSpec, load: Load) -> Entries:
    """Return new entries for a store, of the kind that its value serde needs."""
    kind = ValueEntries if spec.value_serde.immutable else SerializedEntries
    return kind(Codec(spec), load)
