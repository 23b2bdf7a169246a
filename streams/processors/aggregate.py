"""Aggregations of grouped streams by key: one operator shape, three ways to add a record. Those by window
stand on it (`aggregate_windows`, `aggregate_sliding`, `aggregate_sessions`).

The new value of a key is `adder(key, value, old)`, where `old` is None for the first record. The result's
timestamp is the highest of its records. Null keys and values are dropped (Kafka's KStreamAggregate).

An adder may change `old` in place and return it. That object goes back to the store as it is if nobody else
can hold it or a part of it: the store forwards nothing before the commit, and the record's value, which other
operators see too and which may have become a part of the result, is immutable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streams.processors.record import Headers, Process
from streams.processors.table import forward_changes
from streams.processors.wiring import Operator, Wiring
from streams.serdes import is_immutable
from streams.state import CachedStore

Adder: TypeAlias = Callable[[Any, Any, Any], Any]


def counting() -> Adder:
    """Count records."""
    return lambda key, value, old: 1 if old is None else old + 1


def reducing(reducer: Callable[[Any, Any], Any]) -> Adder:
    """The first value, then ``reducer(old, value)``."""
    return lambda key, value, old: value if old is None else reducer(old, value)


def aggregating(initializer: Callable[[], Any], aggregator: Callable[[Any, Any, Any], Any]) -> Adder:
    """``aggregator(key, value, old)``, beginning with ``initializer()``."""
    return lambda key, value, old: aggregator(key, value, initializer() if old is None else old)


def addition(store: CachedStore, adder: Adder) -> Callable[[bytes, Any, Any, int], tuple[Any, int]]:
    """From stored key and the record's key, value and timestamp to the result, which is put in the store."""
    borrow, update, give_back, cached = store.borrow, store.update, store.give_back, store.spec.cached
    known: dict[type, bool] = {}

    def add(stored_key: bytes, key: Any, value: Any, timestamp: int) -> tuple[Any, int]:
        entry = borrow(stored_key)
        if entry is None:
            new = adder(key, value, None)
            update(stored_key, new, timestamp)
            return new, timestamp
        old, newest = entry
        new = adder(key, value, old)
        if newest > timestamp:
            timestamp = newest
        if new is old and cached and cannot_change(value, known):
            give_back(stored_key, new, timestamp)
        else:
            update(stored_key, new, timestamp)
        return new, timestamp

    return add


def cannot_change(value: Any, known: dict[type, bool]) -> bool:
    """Whether a value is immutable; a tuple, as joiners like to return, if its parts are."""
    kind = type(value)
    if kind is tuple:
        return all(cannot_change(part, known) for part in value)
    immutable = known.get(kind)
    if immutable is None:
        immutable = known[kind] = is_immutable(kind)
    return immutable


def aggregate(store_name: str, adder: Adder) -> Operator:
    """One value per key."""

    def build(wiring: Wiring) -> Process:
        store = wiring.key_value_store(store_name)
        forward, dropped = wiring.forward, wiring.metrics.dropped
        add, serialize, cached = addition(store, adder), store.spec.key_serde.serialize, store.spec.cached
        forward_changes(wiring, store)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            new, timestamp = add(serialize(key), key, value, timestamp)
            if not cached:
                forward(key, new, timestamp, headers)

        return process

    return build
