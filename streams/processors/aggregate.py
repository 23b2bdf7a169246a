"""Aggregations of grouped streams, plain and windowed: one operator shape, three ways to add a record.

The new value of a key is `adder(key, value, old)`, where `old` is None for the first record. The result's
timestamp is the highest of its records. Null keys and values are dropped (Kafka's KStreamAggregate).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streams.processors.record import Headers, Process
from streams.processors.table import forward_changes
from streams.processors.windows import TimeWindows
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Window, Windowed
from streams.state.window import window_key

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


def aggregate(store_name: str, adder: Adder) -> Operator:
    """One value per key."""

    def build(wiring: Wiring) -> Process:
        store = wiring.key_value_store(store_name)
        forward, dropped = wiring.forward, wiring.metrics.dropped
        lookup, update = store.lookup, store.update
        serialize, cached = store.spec.key_serde.serialize, store.spec.cached
        forward_changes(wiring, store)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            stored_key = serialize(key)
            entry = lookup(stored_key)
            if entry is None:
                new = adder(key, value, None)
            else:
                new = adder(key, value, entry[0])
                if entry[1] > timestamp:
                    timestamp = entry[1]
            update(stored_key, new, timestamp)
            if not cached:
                forward(key, new, timestamp, headers)

        return process

    return build


def aggregate_windows(store_name: str, windows: TimeWindows, adder: Adder) -> Operator:
    """One value per key and window. A record is taken iff ``window end > stream time − grace``."""
    size, grace = windows.size_ms, windows.grace_ms

    def build(wiring: Wiring) -> Process:
        store = wiring.window_store(store_name)
        forward, dropped, late = wiring.forward, wiring.metrics.dropped, wiring.metrics.late
        lookup, update = store.lookup, store.update
        serialize, cached = store.spec.key_serde.serialize, store.spec.cached
        forward_changes(wiring, store)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            if timestamp > store.stream_time:
                store.stream_time = timestamp
            start = timestamp - timestamp % size
            if start + size <= store.stream_time - grace:
                late()
                return
            stored_key = window_key(serialize(key), start)
            entry = lookup(stored_key)
            if entry is None:
                new = adder(key, value, None)
            else:
                new = adder(key, value, entry[0])
                if entry[1] > timestamp:
                    timestamp = entry[1]
            update(stored_key, new, timestamp)
            if not cached:
                forward(Windowed(key, Window(start, start + size)), new, timestamp, headers)

        return process

    return build
