"""Aggregations of grouped streams by key: one operator, and several ways to add a record.

The aggregations by window build on them (`aggregate_windows`, `aggregate_sliding`, `aggregate_sessions`). The
result's timestamp is the highest of its records. Null keys are dropped, and without windows null values too
(Kafka's KStreamAggregate).

An aggregator may change `old` in place and return it. The object goes back to the store without a copy if
nobody else can hold it or a part of it. That takes two conditions: the store forwards nothing before the
commit, and the record's value is immutable, as other operators see it and the result may contain it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streams.processors.record import Headers, Process
from streams.processors.tables.table import OldValues, forward_changes
from streams.processors.tables.versioned import result_keeper
from streams.processors.wiring import Operator, Wiring
from streams.serdes import is_immutable
from streams.state import CachedStore, VersionedStore


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The functions that add a record to a result and merge results."""

    add: Callable[[Any, Any, Any], Any]
    """``add(key, value, old)`` returns the new result; ``old`` is None for the first record."""
    initial: Callable[[], Any] = lambda: None
    """Returns the result before the first record.

    If updates are forwarded one by one, it is the first update's old value, as in Kafka Streams.
    """
    merge: Callable[[Any, Any, Any], Any] | None = None
    """``merge(key, one, other)`` returns the result of two merged sessions; None: sessions not supported."""
    add_to_merged: Callable[[Any, Any, Any], Any] | None = None
    """Like `add`, for a session's result of `initial` and `merge`, which may be None, as in Kafka.

    None if `add` does the same.
    """
    counts: bool = False
    """True if `add` returns one more than ``old``."""


def counting() -> Aggregation:
    """Return an aggregation that counts records."""
    return Aggregation(
        lambda key, value, old: 1 if old is None else old + 1,
        lambda: 0,
        lambda key, one, other: one + other,
        counts=True,
    )


def reducing(reducer: Callable[[Any, Any], Any]) -> Aggregation:
    """Return an aggregation that begins with the first value and then calls ``reducer(old, value)``."""
    return Aggregation(
        lambda key, value, old: value if old is None else reducer(old, value),
        merge=lambda key, one, other: other if one is None else reducer(one, other),
    )


def aggregating(
    initializer: Callable[[], Any],
    aggregator: Callable[[Any, Any, Any], Any],
    merger: Callable[[Any, Any, Any], Any] | None = None,
) -> Aggregation:
    """Return an aggregation that calls ``aggregator(key, value, old)``, beginning with ``initializer()``."""
    return Aggregation(
        lambda key, value, old: aggregator(key, value, initializer() if old is None else old),
        initializer,
        merger,
        aggregator,
    )


Addition = Callable[[bytes, Any, Any, Any, int, Headers], None]
"""Takes the stored key, the result's key (unused by a cached store), and a record's key, value, timestamp and
headers.
"""


def addition(wiring: Wiring, store: CachedStore, aggregation: Aggregation, old_values: OldValues) -> Addition:
    """Return a function that adds a record to a result in the store and forwards the change.

    A cached store forwards it at the commit.
    """
    if isinstance(store, VersionedStore):
        return _addition_of_version(wiring, store, aggregation, old_values)
    forward_changes(wiring, store, old_values)
    if store.spec.cached:
        return silent_addition(store, aggregation)
    if old_values.are_told:
        return _addition_from_old(wiring, store, aggregation)
    return _addition(wiring, store, aggregation)


def silent_addition(store: CachedStore, aggregation: Aggregation) -> Addition:
    """Return a function that adds a record to a result in the store, and forwards nothing."""
    folding = store.folding(aggregation.add, counts=aggregation.counts)
    if folding is not None:
        return folding.add
    borrow, update, give_back, adder = store.borrow, store.update, store.give_back, aggregation.add
    immutable_types: dict[type, bool] = {}

    def add(
        stored_key: bytes, result_key: Any, key: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        entry = borrow(stored_key)
        if entry is None:
            update(stored_key, adder(key, value, None), timestamp, headers)
            return
        old, newest = entry
        new = adder(key, value, old)
        if newest > timestamp and new is not None:
            timestamp = newest
        if new is old and cannot_change(value, immutable_types):
            give_back(stored_key, new, timestamp, headers)
        else:
            update(stored_key, new, timestamp, headers)

    return add


def _addition(wiring: Wiring, store: CachedStore, aggregation: Aggregation) -> Addition:
    lookup, update, forward, adder = store.lookup, store.update, wiring.forward, aggregation.add

    def add(
        stored_key: bytes, result_key: Any, key: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        entry = lookup(stored_key)
        if entry is None:
            new, newest = adder(key, value, None), timestamp
        else:
            old, newest = entry
            new, newest = adder(key, value, old), max(newest, timestamp)
        update(stored_key, new, newest if new is not None else timestamp)
        forward(result_key, (new, None), newest, headers)

    return add


def _addition_from_old(wiring: Wiring, store: CachedStore, aggregation: Aggregation) -> Addition:
    lookup, update, forward, adder = store.lookup, store.update, wiring.forward, aggregation.add
    initial = aggregation.initial

    def add(
        stored_key: bytes, result_key: Any, key: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        entry = lookup(stored_key)
        newest = timestamp
        if entry is None:
            old, new = initial(), adder(key, value, None)
        else:
            newest = max(entry[1], timestamp)
            new = adder(key, value, entry[0])
            # Read the old value again: the adder may have changed its copy.
            again = lookup(stored_key)
            assert again is not None
            old = again[0]
        update(stored_key, new, newest if new is not None else timestamp)
        forward(result_key, (new, old), newest, headers)

    return add


def _addition_of_version(
    wiring: Wiring, store: VersionedStore[Any, Any], aggregation: Aggregation, old_values: OldValues
) -> Addition:
    """Return a function that puts each new result as a version, at the time of its newest record."""
    latest, adder, initial = store.latest, aggregation.add, aggregation.initial
    keep, tells_old = result_keeper(wiring, store), old_values.are_told

    def add(
        stored_key: bytes, result_key: Any, key: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        entry = latest(stored_key)
        if entry is None:
            old, new = initial() if tells_old else None, adder(key, value, None)
        else:
            timestamp = max(entry[1], timestamp)
            new = adder(key, value, entry[0])
            again = latest(stored_key) if tells_old else None  # the adder may have changed its copy
            old = None if again is None else again[0]
        keep(stored_key, result_key, (new, old), timestamp, headers)

    return add


def cannot_change(value: Any, immutable_types: dict[type, bool]) -> bool:
    """Return True if a value is immutable; a tuple, as joiners often return, is if its parts are.

    ``immutable_types`` remembers the answers by type.
    """
    kind = type(value)
    if kind is tuple:
        return all(cannot_change(part, immutable_types) for part in value)
    immutable = immutable_types.get(kind)
    if immutable is None:
        immutable = immutable_types[kind] = is_immutable(kind)
    return immutable


def aggregate(store_name: str, aggregation: Aggregation, old_values: OldValues) -> Operator:
    """Return the operator of an aggregation with one result per key."""

    def build(wiring: Wiring) -> Process:
        store, dropped = wiring.table_store(store_name), wiring.metrics.dropped
        add, serialize = addition(wiring, store, aggregation, old_values), store.spec.key_serde.serialize

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
            else:
                add(serialize(key), key, key, value, timestamp, headers)

        return process

    return build
