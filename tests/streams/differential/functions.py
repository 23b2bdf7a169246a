"""The functions that plans pick by name. tests/java/Differential.java has the same under the same names.

They take any key and value by their text, so that one serves all types, and keep results short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams import Windowed


def text(value: Any) -> str:
    """Return a key or value of any type as text."""
    if value is None:
        return "-"
    if isinstance(value, Windowed):
        return f"{text(value.key)}@{value.window.start}"
    return str(value)


def short(value: str) -> str:
    return value[-12:]


def first(value: Any) -> str:
    return text(value)[:1]


def has_x(value: Any) -> bool:
    return "x" in text(value)


PREDICATES: dict[str, Callable[[Any, Any], bool]] = {
    "odd": lambda k, v: len(text(v)) % 2 == 1,
    "low": lambda k, v: text(k) < "b",
    "full": lambda k, v: v is not None,
    "known": lambda k, v: k is not None,
    "no_x": lambda k, v: not has_x(v),
}
MAPPERS: dict[str, Callable[[Any], Any]] = {
    "text": text,
    "shout": lambda v: None if v is None else short(text(v) + "!"),
    "drop_x": lambda v: None if has_x(v) else short(text(v)),
}
PAIRS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "swap": lambda k, v: (None if v is None else first(v), short(text(k))),
    "keep": lambda k, v: (short(text(k)), None if v is None else short(text(v) + "~")),
}
LISTS: dict[str, Callable[[Any, Any], list[tuple[Any, Any]]]] = {
    "twice": lambda k, v: [(short(text(k)), short(text(v) + "1")), (first(v), short(text(v) + "2"))],
    "some": lambda k, v: [] if len(text(v)) % 2 else [(short(text(k)), None if v is None else text(v))],
}
VALUE_LISTS: dict[str, Callable[[Any], list[Any]]] = {
    "halves": lambda v: [short(text(v)), first(v)],
    "no_x": lambda v: [] if has_x(v) else [None if v is None else short(text(v))],
}
SELECTORS: dict[str, Callable[[Any, Any], Any]] = {
    "first": lambda k, v: first(v),
    "not_b": lambda k, v: None if text(k) == "b" else short(text(k)),
}
REDUCERS: dict[str, Callable[[Any, Any], Any]] = {
    "concat": lambda a, b: short(text(a) + text(b)),
    "last": lambda a, b: b,
    "forget_x": lambda a, b: None if has_x(b) else short(text(a) + text(b)),
}
AGGREGATORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "append": lambda k, v, a: short(text(a) + text(v)),
    "forget_x": lambda k, v, a: None if has_x(v) else short(text(a) + text(k)),
}
FOREIGN_KEYS: dict[str, Callable[[Any, Any], Any]] = {
    "first": lambda k, v: first(v),
    "key": lambda k, v: k,
    "no_x": lambda k, v: None if has_x(v) else first(v),
}
UNDOERS: dict[str, Callable[[Any, Any], Any]] = {
    "minus": lambda a, b: short(text(a) + "-" + text(b)),
    "forget_x": lambda a, b: None if has_x(b) else short(text(b) + text(a)),
}
"""Functions that take a value out of a grouped table's aggregate."""
JOINERS: dict[str, Callable[[Any, Any], Any]] = {
    "plus": lambda a, b: short(text(a) + "+" + text(b)),
    "drop_x": lambda a, b: None if has_x(a) else short(text(b) + "+" + text(a)),
}
