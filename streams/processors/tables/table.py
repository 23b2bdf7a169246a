"""Operators of tables: the table's own store, its derived tables, and the lookup of a stream in a table.

A table flows as its updates, `Change`s of the new value and the one before. Which nodes tell the one before
is settled while the topology is built (`OldValues`), and known when its operators are.
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
"""From a key to the table's value and its timestamp, None if absent."""
AsOf: TypeAlias = Callable[[Any, int], Entry | None]
"""From a key and a time (ms) to the value that the table had then, and since when."""
Step: TypeAlias = Callable[[Any, Any], Any]
"""From key and value (not None) of a table to the derived table's value, or None."""


class OldValues:
    """True if a table's updates come with the value before.

    `ask`: have them so, if that costs no store that is not there, or at that cost if ``force``. As Kafka
    Streams' enableSendingOldValues.
    """

    def __init__(self, ask: Callable[[bool], bool]) -> None:
        self.are_told = False
        self._ask = ask

    def ask(self, *, force: bool) -> bool:
        """Return True if they are told from now on."""
        self.are_told = self.are_told or self._ask(force)
        return self.are_told


class TableView(Protocol):
    """How to read a table that may be derived from others."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores to be read, which a node that reads the table must name."""
        ...

    def bind(self, wiring: Wiring) -> Getter:
        """The lookup over a task's stores."""
        ...


@runtime_checkable
class AsOfView(TableView, Protocol):
    """A view of a table that may be versioned."""

    @property
    def is_versioned(self) -> bool:
        """True if it knows what the table was at earlier times."""
        ...

    def bind_as_of(self, wiring: Wiring) -> AsOf:
        """The lookup over a task's stores, if it is versioned."""
        ...


def versioned(view: TableView) -> AsOfView | None:
    """The view of a versioned table, None for one of another."""
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
    """A table that is another one's values, changed or left out one by one."""

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
        assert parent is not None, "whoever asks has looked whether it is versioned"
        get_parent = parent.bind_as_of(wiring)
        return lambda key, time: _stepped(step, key, get_parent(key, time))


def _stepped(step: Step, key: Any, entry: Entry | None) -> Entry | None:
    if entry is None:
        return None
    value = step(key, entry[0])
    return None if value is None else (value, entry[1])


def table_source(store_name: Callable[[], str | None], old_values: OldValues) -> Operator:
    """Keep each update in the store, if the table needs one, and pass it on (at the commit, if cached).

    One that is older than what the table has is applied as well, with a warning.
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
        # The store is asked only about updates that are older than another: no key has a later one.
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
    """What puts a new value in a table's store and forwards the change: at the commit if that is cached."""
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
    """Let a cached store's changed keys go to the node's children at each commit."""
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
    """A table derived value by value, in a store of its own if it has one.

    ``is_filter``: where the value before is known, nothing is said of keys that had none and have none; but
    it is of a versioned table (``is_versioned``), which may have had one at that time.
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
    """Look each record up in the table as it is now; the result has the stream's timestamp.

    Null values are dropped. An inner join leaves out null keys and keys that the table does not have; with
    ``left`` these are joined with None.
    """

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        get = view.bind(wiring)

        def join_inner(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            if (found := get(key)) is not None:
                forward(key, joiner(value, found[0]), timestamp, headers)

        def join_left(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if value is None:
                dropped()
                return
            found = None if key is None else get(key)
            forward(key, joiner(value, None if found is None else found[0]), timestamp, headers)

        return join_left if left else join_inner

    return build
