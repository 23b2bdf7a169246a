"""The entries of a store that are in memory, and what protects them from being changed from outside.

A Python object can be changed in place by everybody who holds it: the next operator, a joiner, another store.
That must not change what a store has. So a store whose serde makes immutable values keeps the values
themselves (`ValueEntries`), any other store their bytes (`SerializedEntries`): a value is serialized when it
is put, and each lookup makes a new one.

An aggregation need not pay that for each record: it may `borrow` the value, change it in place and
`give_back` that very object, which is serialized once per commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from logd.records import Headers
from streams.errors import SerializationError
from streams.state.spec import StoreSpec

Entry = tuple[Any, int]
"""A value (None: deleted) and its timestamp."""
Serialized = tuple[bytes | None, int]
"""A value's bytes (None: deleted) and its timestamp."""
Flushed = tuple[bytes | None, Any, int]
"""A value's bytes (None: deleted), the value, and its timestamp."""
Add = Callable[[Any, Any, Any], Any]
"""From what a record is of, its value and the old one to the new one."""
Fold = Callable[[bytes, Any, Any, Any, int, Headers], None]
"""Takes key bytes, one more form of the key (which it makes no use of), and what a record is of, its value,
timestamp and headers.
"""
ToFold = tuple[bytes, Any, Any, int, Headers, int]
"""Key bytes, what a record is of, its value, timestamp, headers, and its offset."""
FoldMany = Callable[[list[ToFold], Callable[[int], None]], None]
"""Takes what to fold, and what is told the offset of the one that failed, before its error is raised."""
Load = Callable[[bytes], Serialized | None]
"""From a key to what the backend has of it."""

FORGOTTEN_MAX = 1000
"""So many keys that were forgotten, and as many as there are others, stay among those that changed."""

_UNKNOWN: Any = object()


def _is_absent(entry: tuple[Any, int] | None) -> bool:
    """Whether an entry says that there is no value; `_UNKNOWN` says nothing."""
    return entry is None or (entry is not _UNKNOWN and entry[0] is None)


class Codec:
    """A store's values to bytes and back; errors name the store."""

    def __init__(self, spec: StoreSpec) -> None:
        self._name = spec.name
        self._changelog = spec.changelog
        self.serialize: Callable[[Any], bytes] = spec.value_serde.serialize
        """The serde's own; `encode` has its errors name the store."""
        self._deserialize = spec.value_serde.deserialize

    def encode(self, key: bytes, value: Any) -> bytes:
        """The bytes of a value; SerializationError if the serde does not take it."""
        try:
            return self.serialize(value)
        except Exception as error:
            raise self.refusal(key, value, error) from error

    def refusal(self, key: bytes, value: Any, error: Exception) -> SerializationError:
        """What to raise where `serialize` has raised this."""
        return SerializationError(
            f"store {self._name} cannot keep {value!r} under key {key!r}: {error}", self._changelog
        )

    def decode(self, data: bytes) -> Any:
        """The value of the bytes; SerializationError if the serde does not read them."""
        try:
            return self._deserialize(data)
        except Exception as error:
            raise SerializationError(
                f"store {self._name} holds a value its serde does not read ({error}): was it written with "
                "another? Give the store another name, or reset the application",
                self._changelog,
            ) from error


class Entries(ABC):
    """Entries by key.

    `dirty`: the keys changed since the last flush, in the order of their last changes, each with the headers
    of the record that it came by. `first_changed`: the same keys in the order of their first changes. `new`:
    those of them that were absent at the last flush, as far as that is known without a look at the backend.
    """

    def __init__(self, codec: Codec, load: Load) -> None:
        self.codec = codec
        self.dirty: dict[bytes, Headers] = {}
        self.first_changed: list[bytes] = []
        self.new: set[bytes] = set()
        self._load = load

    def take_dirty(self) -> tuple[dict[bytes, Headers], set[bytes]]:
        """The dirty keys, which are none from now on, and which of them are new; `flush` each."""
        taken = self.dirty, self.new
        self.dirty, self.first_changed, self.new = {}, [], set()
        return taken

    @abstractmethod
    def lookup(self, key: bytes) -> Entry | None:
        """Value and timestamp of a key, None if absent. Changing the value in place changes nothing here."""

    @abstractmethod
    def timestamp(self, key: bytes) -> int | None:
        """The timestamp of a key's value, None if it is absent; cheaper than `lookup` where that decodes."""

    @abstractmethod
    def borrow(self, key: bytes) -> Entry | None:
        """As `lookup`, for a caller who may `give_back` the value."""

    @abstractmethod
    def put(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None:
        """Set a key (value None deletes it). Changing the value in place afterwards changes nothing here."""

    @abstractmethod
    def give_back(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None:
        """Set a key to the object borrowed, changed in place; nobody else may hold it or a part of it."""

    @abstractmethod
    def flush(self, keys: Iterable[bytes], *, with_values: bool) -> list[Flushed]:
        """What there is of dirty keys, in their order; values are the caller's, and None unless wanted."""

    @abstractmethod
    def set_absent(self, key: bytes) -> None:
        """Have a key deleted without making it dirty."""

    def forget(self, key: bytes) -> None:
        """Undo all that was done since the last flush to a key that was absent then."""
        self.dirty.pop(key, None)
        if len(self.first_changed) > 2 * len(self.dirty) + FORGOTTEN_MAX:
            self.first_changed = list(self.dirty)
            self.new &= self.dirty.keys()

    @abstractmethod
    def keep_dirty(self) -> None:
        """Forget all entries but those that are dirty."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __contains__(self, key: object) -> bool:
        """Whether the key is in memory, be it as absent."""


class ValueEntries(Entries):
    """Immutable values, kept as they are."""

    def __init__(self, codec: Codec, load: Load) -> None:
        super().__init__(codec, load)
        self._entries: dict[bytes, Entry | None] = {}

    def lookup(self, key: bytes) -> Entry | None:
        entry = self._entries.get(key, _UNKNOWN)
        if entry is _UNKNOWN:
            entry = self._entries[key] = self._loaded(key)
        return entry if entry is not None and entry[0] is not None else None

    def _loaded(self, key: bytes) -> Entry | None:
        stored = self._load(key)
        return None if stored is None else (self.codec.decode(stored[0]), stored[1])  # type: ignore[arg-type]

    borrow = lookup

    def timestamp(self, key: bytes) -> int | None:
        entry = self.lookup(key)
        return None if entry is None else entry[1]

    def put(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None:
        dirty, entries = self.dirty, self._entries
        if dirty.pop(key, None) is None:  # the last change decides the order, as in Kafka's cache
            self.first_changed.append(key)
            if _is_absent(entries.get(key, _UNKNOWN)):
                self.new.add(key)
        dirty[key] = headers
        entries[key] = (value, timestamp)

    give_back = put

    def folding(self, add: Add) -> Fold:
        """A function that sets a key to ``add(of, value, old)``, old being None if it is absent, with the
        later one of both timestamps: `lookup` and `put` in one, for aggregations, which do nothing else for
        each record.
        """

        def fold(key: bytes, told_as: Any, of: Any, value: Any, timestamp: int, headers: Headers) -> None:
            entries, dirty = self._entries, self.dirty
            entry = entries.get(key, _UNKNOWN)
            if entry is _UNKNOWN:
                entry = self._loaded(key)
            if entry is None or entry[0] is None:
                new, was_absent = add(of, value, None), True
            else:
                old, newest = entry
                new, was_absent = add(of, value, old), False
                if newest > timestamp and new is not None:
                    timestamp = newest
            if dirty.pop(key, None) is None:
                self.first_changed.append(key)
                if was_absent:
                    self.new.add(key)
            dirty[key] = headers
            entries[key] = (new, timestamp)

        return fold

    def folding_many(self, add: Add) -> FoldMany:
        """As `folding`, of many records."""

        def fold_many(records: list[ToFold], fail: Callable[[int], None]) -> None:
            entries, dirty, new_keys, first_changed = self._entries, self.dirty, self.new, self.first_changed
            known, pop, load = entries.get, dirty.pop, self._loaded
            offset = -1
            try:
                for key, of, value, timestamp, headers, offset in records:  # noqa: B007
                    entry = known(key, _UNKNOWN)
                    if entry is _UNKNOWN:
                        entry = load(key)
                    if entry is None or entry[0] is None:
                        new, was_absent = add(of, value, None), True
                    else:
                        old, newest = entry
                        new, was_absent = add(of, value, old), False
                        if newest > timestamp and new is not None:
                            timestamp = newest
                    if pop(key, None) is None:
                        first_changed.append(key)
                        if was_absent:
                            new_keys.add(key)
                    dirty[key] = headers
                    entries[key] = (new, timestamp)
            except Exception:
                fail(offset)
                raise

        return fold_many

    def flush(self, keys: Iterable[bytes], *, with_values: bool) -> list[Flushed]:
        entries, serialize = self._entries, self.codec.serialize
        found: list[Flushed] = []
        append = found.append
        for key in keys:
            value, timestamp = entries[key] or (None, 0)
            try:
                append((None if value is None else serialize(value), value, timestamp))
            except Exception as error:
                raise self.codec.refusal(key, value, error) from error
        return found

    def set_absent(self, key: bytes) -> None:
        self._entries[key] = None

    def forget(self, key: bytes) -> None:
        self._entries.pop(key, None)
        super().forget(key)

    def keep_dirty(self) -> None:
        entries = self._entries
        self._entries = {key: entries[key] for key in self.dirty}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries


class SerializedEntries(Entries):
    """Values as their bytes, except those that were given back and not looked up by anybody else since."""

    def __init__(self, codec: Codec, load: Load) -> None:
        super().__init__(codec, load)
        self._entries: dict[bytes, Serialized | None] = {}
        self._given_back: dict[bytes, Entry] = {}

    def lookup(self, key: bytes) -> Entry | None:
        if key in self._given_back:
            self._serialize(key)
        entry = self._serialized(key)
        if entry is None or entry[0] is None:
            return None
        return self.codec.decode(entry[0]), entry[1]

    def _serialized(self, key: bytes) -> Serialized | None:
        entry = self._entries.get(key, _UNKNOWN)
        if entry is _UNKNOWN:
            entry = self._entries[key] = self._load(key)
        return entry  # type: ignore[no-any-return]

    def timestamp(self, key: bytes) -> int | None:
        entry = self._given_back.get(key) or self._serialized(key)
        return None if entry is None or entry[0] is None else entry[1]

    def borrow(self, key: bytes) -> Entry | None:
        return self._given_back.get(key) or self.lookup(key)

    def put(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None:
        data = None if value is None else self.codec.encode(key, value)
        self._mark(key, headers)
        self._entries[key] = (data, timestamp)
        self._given_back.pop(key, None)

    def give_back(self, key: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None:
        self._mark(key, headers)
        self._given_back[key] = (value, timestamp)

    def _mark(self, key: bytes, headers: Headers) -> None:
        """Note that a key is about to change. The last change decides its place, as in Kafka's cache."""
        if self.dirty.pop(key, None) is None:
            self.first_changed.append(key)
            if _is_absent(self._entries.get(key, _UNKNOWN)):
                self.new.add(key)
        self.dirty[key] = headers

    def _serialize(self, key: bytes) -> Any:
        """Keep the bytes of a value that was given back instead of it; returns the value."""
        value, timestamp = self._given_back.pop(key)
        self._entries[key] = (self.codec.encode(key, value), timestamp)
        return value

    def flush(self, keys: Iterable[bytes], *, with_values: bool) -> list[Flushed]:
        entries, given_back, decode = self._entries, self._given_back, self.codec.decode
        found: list[Flushed] = []
        for key in keys:
            value = self._serialize(key) if key in given_back else None
            data, timestamp = entries[key] or (None, 0)
            if with_values and value is None and data is not None:
                value = decode(data)
            found.append((data, value, timestamp))
        return found

    def set_absent(self, key: bytes) -> None:
        self._given_back.pop(key, None)
        self._entries[key] = None

    def forget(self, key: bytes) -> None:
        self._given_back.pop(key, None)
        self._entries.pop(key, None)
        super().forget(key)

    def keep_dirty(self) -> None:
        # What was given back is dirty, and was borrowed before, so its key is among the entries.
        entries = self._entries
        self._entries = {key: entries[key] for key in self.dirty}

    def __len__(self) -> int:
        return len(self._entries)  # it was borrowed before, so its key is there

    def __contains__(self, key: object) -> bool:
        return key in self._entries


def entries_for(spec: StoreSpec, load: Load) -> Entries:
    """The entries of a store, as its serde needs them."""
    kind = ValueEntries if spec.value_serde.immutable else SerializedEntries
    return kind(Codec(spec), load)
