"""True if a user's function takes the key too, or values alone: Kafka has both (KIP-149).

It is decided once, when the topology is built, by the function's signature; a record pays nothing for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from streams.errors import TopologyError


def takes_key(function: Callable[..., Any], operator: str) -> bool:
    """Return True if to call ``function(key, value)``, else ``function(value)``.

    Parameters with a default do not count: ``str.split`` and ``round`` take a value. So do classes and
    builtins that do not tell their signature, and functions that take any number of arguments, such as
    ``print``. Raises TopologyError for a function that can be called in neither way.
    """
    return _takes_key(function, f"{operator}()", "value")


def coroutine_takes_key(function: Callable[..., Any], operator: str, *, has_context: bool) -> bool:
    """Return `takes_key` of a coroutine function; with ``has_context`` it takes a context after the value."""
    return _takes_key(function, f"{operator}()", "value", *(("context",) if has_context else ()))


def joiner_takes_key(joiner: Callable[..., Any]) -> bool:
    """Return True if to call ``joiner(key, value, other)``, else ``joiner(value, other)``; as `takes_key`."""
    return _takes_key(joiner, "a join", "value", "other")


def with_key(function: Callable[..., Any], operator: str) -> Callable[[Any, Any], Any]:
    """Return a function of (key, value) that calls the user's function of (key, value) or of (value)."""
    return function if takes_key(function, operator) else lambda key, value: function(value)


def check_supplier(supplier: object, operator: str, product: str = "processor") -> None:
    """Raise TopologyError unless ``supplier`` is a function or class that can be called."""
    if not callable(supplier):
        raise TopologyError(
            f"{operator}() makes a {product} per task: give it the class or a function, not {supplier!r}"
        )


def _takes_key(function: Callable[..., Any], caller: str, *values: str) -> bool:
    without, with_key = f"({', '.join(values)})", f"({', '.join(('key', *values))})"
    if not callable(function):
        raise TopologyError(f"{caller} takes a function of {without} or of {with_key}, not {function!r}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin, such as `str`, `int` or `dict`
        return False
    if _fits(signature, len(values)):
        return False
    if _fits(signature, len(values) + 1):
        return True
    name = getattr(function, "__qualname__", repr(function))
    raise TopologyError(
        f"{caller} calls its function with {without} or with {with_key}; {name}{signature} takes neither"
    )


def _fits(signature: inspect.Signature, arguments: int) -> bool:
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return False
    return True
