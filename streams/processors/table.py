"""Operators of tables: the table's own store, its derived views, and the lookup of a stream in a table.

A table flows as its updates: the new value, or None for a deleted key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from streams.processors.record import Headers, Process
from streams.processors.wiring import Operator, Wiring
from streams.state import CachedStore

Getter: TypeAlias = Callable[[Any], Any]
"""From a key to the table's value, None if absent."""


@dataclass(frozen=True, slots=True)
class TableView:
    """How to read a table that may be derived: the store below it, and the steps from there."""

    store: str
    steps: tuple[Callable[[Any, Any], Any], ...] = ()

    def then(self, step: Callable[[Any, Any], Any]) -> TableView:
        """The view with another step: from key and value (not None) to the new value, or None."""
        return TableView(self.store, (*self.steps, step))

    def bind(self, store: CachedStore) -> Getter:
        """The lookup over a task's store."""
        encode, lookup, steps = store.encode_key, store.lookup, self.steps

        def get(key: Any) -> Any:
            entry = lookup(encode(key))
            return None if entry is None else entry[0]

        def get_derived(key: Any) -> Any:
            value = get(key)
            for step in steps:
                if value is None:
                    return None
                value = step(key, value)
            return value

        return get_derived if steps else get


def table_source(store_name: Callable[[], str | None]) -> Operator:
    """Keep each update in the store, if the table needs one, and pass it on (at the commit, if cached)."""

    def build(wiring: Wiring) -> Process:
        name = store_name()
        forward, dropped = wiring.forward, wiring.metrics.dropped
        if name is None:

            def pass_on(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
                if key is None:
                    dropped()
                else:
                    forward(key, value, timestamp, headers)

            return pass_on

        store = wiring.key_value_store(name)
        update, serialize, cached = store.update, store.spec.key_serde.serialize, store.spec.cached
        forward_changes(wiring, store)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None:
                dropped()
                return
            update(serialize(key), value, timestamp)
            if not cached:
                forward(key, value, timestamp, headers)

        return process

    return build


def forward_changes(wiring: Wiring, store: CachedStore) -> None:
    """Let a cached store's changed keys go to the node's children at each commit."""
    if not store.spec.cached or not wiring.children:
        return
    forward, decode = wiring.forward, store.decode_key

    def changed(key: bytes, value: Any, timestamp: int) -> None:
        forward(decode(key), value, timestamp, ())

    store.listener = changed


def filter_table(predicate: Callable[[Any, Any], bool]) -> Operator:
    """An update that does not pass becomes a tombstone: what passed before must go."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            kept = value if value is not None and predicate(key, value) else None
            forward(key, kept, timestamp, headers)

        return process

    return build


def map_table_values(mapper: Callable[[Any], Any]) -> Operator:
    """Map values; tombstones stay tombstones."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            forward(key, None if value is None else mapper(value), timestamp, headers)

        return process

    return build


def join_table(view: Callable[[], TableView], joiner: Callable[[Any, Any], Any], *, left: bool) -> Operator:
    """Look each record up in the table as it is now; the result has the stream's timestamp.

    Null values are dropped. An inner join leaves out null keys and keys that the table does not have; with
    ``left`` these are joined with None.
    """

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        bound = view()
        get = bound.bind(wiring.store(bound.store))

        def join_inner(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            if (found := get(key)) is not None:
                forward(key, joiner(value, found), timestamp, headers)

        def join_left(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if value is None:
                dropped()
                return
            found = None if key is None else get(key)
            forward(key, joiner(value, found), timestamp, headers)

        return join_left if left else join_inner

    return build
