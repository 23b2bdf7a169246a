"""Operators of tables: the table's own store, its derived tables, and the lookup of a stream in a table.

Nodes forward a table's updates as `Change`s: the new value and the previous one. Which nodes forward previous
values is decided while the topology is built (`OldValues`), before its operators are built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from streams.processors.record import Headers, Process
from streams.processors.tables.change import Change
from streams.processors.tables.out_of_order import OutOfOrderUpdates
from streams.processors.tables.versioned import as_late_as, version_keeper
from streams.processors.wiring import Operator, Wiring
from streams.state import CachedStore, Changed, Entry, VersionedStore

Getter: TypeAlias = Callable[[Any], Entry | None]
"""Returns the table's value for a key and its timestamp, None if absent."""
AsOf: TypeAlias = Callable[[Any, int], Entry | None]
"""Returns the value that the table had for a key at a time (ms), and its timestamp; None if absent."""
Step: TypeAlias = Callable[[Any, Any], Any]
"""Returns the derived table's value, or None, for a key and its value (not None) in the table."""


class OldValues:
    """True if a table's updates come with the previous value. As Kafka Streams' enableSendingOldValues.

    ``ask`` takes ``force``: it decides whether they can, without a new store, or with one if forced.
    """

    def __init__(self, ask: Callable[[bool], bool]) -> None:
        self.are_told = False
        self._ask = ask

    def ask(self, *, force: bool) -> bool:
        """Request previous values; ``force``: add a store if need be. Return True if updates have them."""
        self.are_told = self.are_told or self._ask(force)
        return self.are_told


class TableView(Protocol):
    """A lookup of a table that may be derived from others."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The names of the stores to read; a node that reads the table must name them in its ``stores=``."""
        ...

    def bind(self, wiring: Wiring) -> Getter:
        """Return the lookup over a task's stores."""
        ...


@runtime_checkable
class AsOfView(TableView, Protocol):
    """A view of a table that may be versioned."""

    @property
    def is_versioned(self) -> bool:
        """True if the table has its earlier values."""
        ...

    def bind_as_of(self, wiring: Wiring) -> AsOf:
        """Return the lookup by key and time over a task's stores; only if the table is versioned."""
        ...


def versioned(view: TableView) -> AsOfView | None:
    """Return the view if its table is versioned, else None."""
    return view if isinstance(view, AsOfView) and view.is_versioned else None


@dataclass(frozen=True, slots=True)
class StoreView:
    """A table with a store of its own."""

    store: str
    is_versioned: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, wiring: Wiring) -> Getter:
        store = wiring.store(self.store)
        encode, read = store.encode_key, store.reader
        return lambda key: read(encode(key))

    def bind_as_of(self, wiring: Wiring) -> AsOf:
        store = wiring.store(self.store)
        assert isinstance(store, VersionedStore), f"{self.store} is not a versioned store"
        encode, as_of = store.encode_key, store.as_of
        return lambda key, time: as_of(encode(key), time)


@dataclass(frozen=True, slots=True)
class DerivedView:
    """A table derived from another value by value, without a store."""

    parent: TableView
    step: Step

    @property
    def stores(self) -> tuple[str, ...]:
        return self.parent.stores

    def bind(self, wiring: Wiring) -> Getter:
        get_parent, step = self.parent.bind(wiring), self.step
        return lambda key: _stepped(step, key, get_parent(key))

    @property
    def is_versioned(self) -> bool:
        return versioned(self.parent) is not None

    def bind_as_of(self, wiring: Wiring) -> AsOf:
        parent, step = versioned(self.parent), self.step
        assert parent is not None, "callers check is_versioned first"
        get_parent = parent.bind_as_of(wiring)
        return lambda key, time: _stepped(step, key, get_parent(key, time))


def _stepped(step: Step, key: Any, entry: Entry | None) -> Entry | None:
    if entry is None:
        return None
    value = step(key, entry[0])
    return None if value is None else (value, entry[1])


def table_source(store_name: Callable[[], str | None], old_values: OldValues) -> Operator:
    """Return the operator that puts a topic's updates in the table's store, if any, and forwards them.

    A cached store forwards updates at the commit. An update older than the key's value is applied as well,
    with a warning.
    """

    def build(wiring: Wiring) -> Process:
        name = store_name()
        forward, dropped = wiring.forward, wiring.metrics.dropped
        if name is None:

            def pass_on(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
                if key is None:
                    dropped()
                else:
                    forward(key, (value, None), timestamp, headers)

            return pass_on

        keep, store = keeper(wiring, name, old_values), wiring.store(name)
        if isinstance(store, VersionedStore):
            return _with_key(keep, dropped)
        look = OutOfOrderUpdates(store, wiring.task).look
        # The store is read only for an update older than the newest one: otherwise no key has a later value.
        newest = wiring.task.stream_time
        encode, update = store.encode_key, store.update

        def process_cached(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            nonlocal newest
            if key is None:
                dropped()
                return
            if timestamp < newest:
                look(key, timestamp)
            else:
                newest = timestamp
            update(encode(key), value, timestamp, headers)  # as `keep` does, with a call less for each record

        if store.spec.cached:
            return process_cached

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            nonlocal newest
            if key is None:
                dropped()
                return
            if timestamp < newest:
                look(key, timestamp)
            else:
                newest = timestamp
            keep(key, value, timestamp, headers)

        return process

    return build


def _with_key(keep: Process, dropped: Callable[[], None]) -> Process:
    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            dropped()
        else:
            keep(key, value, timestamp, headers)

    return process


def keeper(wiring: Wiring, store_name: str, old_values: OldValues) -> Process:
    """Return a function that puts a value in a table's store and forwards the change.

    A cached store forwards it at the commit.
    """
    store = wiring.store(store_name)
    if isinstance(store, VersionedStore):
        return version_keeper(wiring, store, old_values)
    encode, update, lookup = store.encode_key, store.update, store.lookup
    forward, tells_old = wiring.forward, old_values.are_told
    forward_changes(wiring, store, old_values)
    if store.spec.cached:
        return lambda key, value, timestamp, headers: update(encode(key), value, timestamp, headers)

    def keep(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        stored_key = encode(key)
        before = lookup(stored_key) if tells_old else None
        update(stored_key, value, timestamp)
        forward(key, (value, None if before is None else before[0]), timestamp, headers)

    return keep


def forward_changes(wiring: Wiring, store: CachedStore, old_values: OldValues) -> None:
    """Have a cached store forward its changed keys to the node's children at each commit."""
    if not store.spec.cached:
        return
    store.is_table = True
    if not wiring.children:
        return
    forward, decode = wiring.forward, store.decode_key

    def changed(changes: list[Changed]) -> None:
        for key, new, old, timestamp, headers in changes:
            forward(decode(key), (new, old), timestamp, headers)

    store.listener, store.tells_old_values = changed, old_values.are_told


def derive_table(
    step: Step,
    old_values: OldValues,
    store_name: str | None,
    *,
    is_filter: bool,
    is_versioned: bool = False,
) -> Operator:
    """Return the operator of a table derived value by value; its store, if any, is ``store_name``.

    ``is_filter``: if previous values are available, an update without a previous and a new value is not
    forwarded. An update of a versioned table (``is_versioned``) always is, as the key may have had a value at
    the update's time.
    """
    is_filter = is_filter and not is_versioned

    def build(wiring: Wiring) -> Process:
        if store_name is not None:
            return _derive_stored(wiring, step, store_name, old_values, is_filter=is_filter)
        forward, tells_old = wiring.forward, old_values.are_told

        def process_version(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            new, old = value
            new = None if new is None else step(key, new)
            old = None if old is None or not tells_old else step(key, old)
            forward(key, as_late_as(value, new, old), timestamp, headers)

        if is_versioned:
            return process_version

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            new = None if value[0] is None else step(key, value[0])
            forward(key, (new, None), timestamp, headers)

        def process_both(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            new, old = value
            new = None if new is None else step(key, new)
            old = None if old is None else step(key, old)
            if new is not None or old is not None or not is_filter:
                forward(key, (new, old), timestamp, headers)

        return process_both if tells_old else process

    return build


def _derive_stored(
    wiring: Wiring, step: Step, store_name: str, old_values: OldValues, *, is_filter: bool
) -> Process:
    store = wiring.store(store_name)
    keep, lookup, encode = keeper(wiring, store_name, old_values), store.lookup, store.encode_key
    leaves_out = is_filter and old_values.are_told

    def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
        new = None if value[0] is None else step(key, value[0])
        if new is None and leaves_out and lookup(encode(key)) is None:
            return
        keep(key, new, timestamp, headers)

    return process


def join_table(view: TableView, joiner: Callable[[Any, Any], Any], *, left: bool) -> Operator:
    """Return the operator that joins each record with the table's current value of its key.

    The result has the record's timestamp. Null values are dropped. An inner join drops null keys and ignores
    keys that the table does not have; with ``left`` these are joined with None.
    """

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        get = view.bind(wiring)

        def join_inner(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            if (entry := get(key)) is not None:
                forward(key, joiner(value, entry[0]), timestamp, headers)

        def join_left(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if value is None:
                dropped()
                return
            entry = None if key is None else get(key)
            forward(key, joiner(value, None if entry is None else entry[0]), timestamp, headers)

        return join_left if left else join_inner

    return build
