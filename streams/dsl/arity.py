"""Whether a user's function takes key and value, or the value alone: Kafka has both (KIP-149).

It is decided once, when the topology is built, by the function's signature; a record pays nothing for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from streams.errors import TopologyError


def takes_key(function: Callable[..., Any], operator: str) -> bool:
    """Whether to call ``function(key, value)``, else ``function(value)``.

    Parameters with a default do not count: ``str.split`` and ``round`` take a value. So do classes and
    builtins that do not tell their signature, and functions that take any number of arguments, such as
    ``print``. Raises TopologyError for a function that can be called in neither way.
    """
    if not callable(function):
        raise TopologyError(f"{operator}() takes a function of (key, value) or of (value), not {function!r}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin, such as `str`, `int` or `dict`
        return False
    if _fits(signature, 1):
        return False
    if _fits(signature, 2):
        return True
    name = getattr(function, "__qualname__", repr(function))
    raise TopologyError(
        f"{operator}() calls its function with (value) or with (key, value); {name}{signature} takes neither"
    )


def _fits(signature: inspect.Signature, arguments: int) -> bool:
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return False
    return True
