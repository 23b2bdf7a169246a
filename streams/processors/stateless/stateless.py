"""Operators without state. User functions take key and value unless their name says values only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streams.processors.record import Headers, Process, discard
from streams.processors.stateless.printer import Printer
from streams.processors.wiring import Operator, Wiring


def filter_records(predicate: Callable[[Any, Any], bool], *, wanted: bool = True) -> Operator:
    """Pass on what the predicate says ``wanted`` of."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def keep(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if predicate(key, value):
                forward(key, value, timestamp, headers)

        def leave_out(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if not predicate(key, value):
                forward(key, value, timestamp, headers)

        return keep if wanted else leave_out

    return build


def map_records(mapper: Callable[[Any, Any], tuple[Any, Any]]) -> Operator:
    """Replace key and value."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            key, value = mapper(key, value)
            forward(key, value, timestamp, headers)

        return process

    return build


def map_values(mapper: Callable[[Any], Any]) -> Operator:
    """Replace the value."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            forward(key, mapper(value), timestamp, headers)

        return process

    return build


def flat_map(mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> Operator:
    """Replace a record by any number of keys and values."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            for new_key, new_value in mapper(key, value):
                forward(new_key, new_value, timestamp, headers)

        return process

    return build


def flat_map_values(mapper: Callable[[Any], Iterable[Any]]) -> Operator:
    """Replace a value by any number of them under the same key."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            for new_value in mapper(value):
                forward(key, new_value, timestamp, headers)

        return process

    return build


def map_values_with_key(mapper: Callable[[Any, Any], Any]) -> Operator:
    """Replace the value by what the mapper makes of key and value."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            forward(key, mapper(key, value), timestamp, headers)

        return process

    return build


def flat_map_values_with_key(mapper: Callable[[Any, Any], Iterable[Any]]) -> Operator:
    """Replace a value by those the mapper makes of key and value, under the same key."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            for new_value in mapper(key, value):
                forward(key, new_value, timestamp, headers)

        return process

    return build


def select_key(selector: Callable[[Any, Any], Any]) -> Operator:
    """Replace the key."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            forward(selector(key, value), value, timestamp, headers)

        return process

    return build


def peek(action: Callable[[Any, Any], object]) -> Operator:
    """Call the action, pass the record on unchanged."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            action(key, value)
            forward(key, value, timestamp, headers)

        return process

    return build


def foreach(action: Callable[[Any, Any], object]) -> Operator:
    """Call the action; the stream ends here."""

    def build(wiring: Wiring) -> Process:
        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            action(key, value)

        return process

    return build


def split(predicates: Sequence[Callable[[Any, Any], bool]], children: Sequence[str]) -> Operator:
    """Send a record to the child of the first predicate that takes it, else to the one behind those, if any.

    Both lists may grow until a task starts.
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
    """Print ``line(key, value)`` of every record; the stream ends here."""

    def build(wiring: Wiring) -> Process:
        write = printer.open()
        wiring.task.closers.append(printer.close)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            write(line(key, value))

        return process

    return build


def pass_through() -> Operator:
    """Merges, and tables read as streams: the child itself, no call of its own."""
    return lambda wiring: wiring.forward


def drop_null_keys(*, unless: Callable[[], bool]) -> Operator:
    """Drop null keys before a repartition topic, ``unless`` something behind it takes them."""

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
