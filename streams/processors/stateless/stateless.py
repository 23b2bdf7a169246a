"""Operators without state. Functions take key and value, or only the value where the operator says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streams.processors.record import Headers, Process, discard
from streams.processors.stateless.printer import Printer
from streams.processors.wiring import Operator, Wiring


def filter_records(predicate: Callable[[Any, Any], bool], *, forward_if: bool = True) -> Operator:
    """Return the operator that forwards the records for which the predicate equals ``forward_if``."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def keep(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if predicate(key, value):
                forward(key, value, timestamp, headers)

        def leave_out(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if not predicate(key, value):
                forward(key, value, timestamp, headers)

        return keep if forward_if else leave_out

    return build


def map_records(mapper: Callable[[Any, Any], tuple[Any, Any]]) -> Operator:
    """Return the operator that replaces key and value by the mapper's result."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            key, value = mapper(key, value)
            forward(key, value, timestamp, headers)

        return process

    return build


def map_values(mapper: Callable[[Any], Any]) -> Operator:
    """Return the operator that replaces the value by the mapper's result."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            forward(key, mapper(value), timestamp, headers)

        return process

    return build


def flat_map(mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> Operator:
    """Return the operator that replaces a record by the keys and values that the mapper returns."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            for new_key, new_value in mapper(key, value):
                forward(new_key, new_value, timestamp, headers)

        return process

    return build


def flat_map_values(mapper: Callable[[Any], Iterable[Any]]) -> Operator:
    """Return the operator that replaces a value by the values that the mapper returns, under the same key."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            for new_value in mapper(value):
                forward(key, new_value, timestamp, headers)

        return process

    return build


def map_values_with_key(mapper: Callable[[Any, Any], Any]) -> Operator:
    """Return the operator that replaces the value by the mapper's result for key and value."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            forward(key, mapper(key, value), timestamp, headers)

        return process

    return build


def flat_map_values_with_key(mapper: Callable[[Any, Any], Iterable[Any]]) -> Operator:
    """Return the operator that replaces a value by the mapper's values for key and value."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            for new_value in mapper(key, value):
                forward(key, new_value, timestamp, headers)

        return process

    return build


def select_key(selector: Callable[[Any, Any], Any]) -> Operator:
    """Return the operator that replaces the key by the selector's result."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            forward(selector(key, value), value, timestamp, headers)

        return process

    return build


def peek(action: Callable[[Any, Any], object]) -> Operator:
    """Return the operator that calls the action and forwards the record unchanged."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            action(key, value)
            forward(key, value, timestamp, headers)

        return process

    return build


def foreach(action: Callable[[Any, Any], object]) -> Operator:
    """Return the operator that calls the action and forwards nothing."""

    def build(wiring: Wiring) -> Process:
        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            action(key, value)

        return process

    return build


def split(predicates: Sequence[Callable[[Any, Any], bool]], children: Sequence[str]) -> Operator:
    """Return the operator that forwards a record to the child of the first predicate that is True.

    If none is, the record goes to the child after those of the predicates, if any. Both lists may grow until
    a task starts.
    """

    def build(wiring: Wiring) -> Process:
        branches = [
            (predicate, wiring.children[child])
            for predicate, child in zip(predicates, children, strict=False)
        ]
        rest = children[len(predicates) :]
        otherwise = wiring.children[rest[0]] if rest else discard

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            for predicate, forward in branches:
                if predicate(key, value):
                    forward(key, value, timestamp, headers)
                    return
            otherwise(key, value, timestamp, headers)

        return process

    return build


def print_records(line: Callable[[Any, Any], str], printer: Printer) -> Operator:
    """Return the operator that prints ``line(key, value)`` of each record and forwards nothing."""

    def build(wiring: Wiring) -> Process:
        write = printer.open()
        wiring.task.closers.append(printer.close)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            write(line(key, value))

        return process

    return build


def pass_through() -> Operator:
    """Return the operator of merges and of tables read as streams: the child itself, without another call."""
    return lambda wiring: wiring.forward


def drop_null_keys(*, unless: Callable[[], bool]) -> Operator:
    """Return the operator that drops null keys before a repartition topic.

    ``unless``: returns True if a node after the topic accepts null keys; called once, when a task is built.
    """

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        if unless():
            return forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None:
                dropped()
            else:
                forward(key, value, timestamp, headers)

        return process

    return build
