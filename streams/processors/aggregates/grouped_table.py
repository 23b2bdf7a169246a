"""Operators of regrouped tables: the new key of each update, and aggregations that subtract old values.

An update of the table, a `Change`, becomes one or two of the regrouped table: the old value is subtracted
from the result of its group, and the new value is added to the result of its group. As Kafka Streams'
KTableRepartitionMap, KTableAggregate and KTableReduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.processors.aggregates.aggregate import Aggregation, addition
from streams.processors.record import Headers, Process
from streams.processors.tables.change import Change
from streams.processors.tables.table import OldValues
from streams.processors.wiring import Operator, Wiring


def regroup(selector: Callable[[Any, Any], tuple[Any, Any]]) -> Operator:
    """Return an operator that forwards each update under the keys, and with the values, of the selector.

    ``selector(key, value)`` is called for the old and for the new value. If it returns a null key or value,
    that side is left out.
    """

    def selected(key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        pair = selector(key, value)
        return None if pair[0] is None or pair[1] is None else pair

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            new, old = selected(key, value[0]), selected(key, value[1])
            if new is not None and old is not None and new[0] == old[0]:
                forward(new[0], (new[1], old[1]), timestamp, headers)
                return
            if old is not None:  # first, so that a value that changes its group is never counted twice
                forward(old[0], (None, old[1]), timestamp, headers)
            if new is not None:
                forward(new[0], (new[1], None), timestamp, headers)

        return process

    return build


def of_changes(add: Callable[[Any, Any, Any], Any], subtract: Callable[[Any, Any, Any], Any]) -> Aggregation:
    """Return an aggregation of `Change`s.

    For each it calls ``subtract(key, old_value, so_far)``, then ``add(key, new_value, so_far)``. If there is
    no result so far, ``subtract`` is not called, and ``so_far`` is None for ``add``.
    """

    def apply(key: Any, value: Change, so_far: Any) -> Any:
        new, old = value
        if old is not None and so_far is not None:
            so_far = subtract(key, old, so_far)
        return so_far if new is None else add(key, new, so_far)

    return Aggregation(apply)


def counting() -> Aggregation:
    """Return an aggregation that counts the table's keys."""
    return of_changes(
        lambda key, value, so_far: 1 if so_far is None else so_far + 1,
        lambda key, value, so_far: so_far - 1,
    )


def reducing(adder: Callable[[Any, Any], Any], subtractor: Callable[[Any, Any], Any]) -> Aggregation:
    """Return an aggregation that begins with the first value and then calls ``adder(so_far, value)``.

    ``subtractor(so_far, value)`` removes an old value.
    """
    return of_changes(
        lambda key, value, so_far: value if so_far is None else adder(so_far, value),
        lambda key, value, so_far: subtractor(so_far, value),
    )


def aggregating(
    initializer: Callable[[], Any],
    adder: Callable[[Any, Any, Any], Any],
    subtractor: Callable[[Any, Any, Any], Any],
) -> Aggregation:
    """Return an aggregation that begins with ``initializer()`` and calls ``adder(key, value, so_far)``.

    ``subtractor(key, value, so_far)`` removes an old value.
    """
    return of_changes(
        lambda key, value, so_far: adder(key, value, initializer() if so_far is None else so_far), subtractor
    )


def aggregate_changes(store_name: str, aggregation: Aggregation, old_values: OldValues) -> Operator:
    """Return the operator of an aggregation of a regrouped table, with one result per group."""

    def build(wiring: Wiring) -> Process:
        store = wiring.table_store(store_name)
        add, serialize = addition(wiring, store, aggregation, old_values), store.spec.key_serde.serialize

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            add(serialize(key), key, key, value, timestamp, headers)

        return process

    return build
