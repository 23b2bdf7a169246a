"""Joiners: functions of value and other value, or of key, value and other value (KIP-149).

Which of them a function is is decided once, when the topology is built, by its signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from streams.errors import TopologyError

Joiner: TypeAlias = Callable[[Any, Any, Any], Any]
"""From key, value and the other value to the result."""


def takes_key(joiner: Callable[..., Any]) -> bool:
    """Whether to call ``joiner(key, value, other)``, else ``joiner(value, other)``.

    What can be called with two arguments is: parameters with a default do not count, nor does ``*args``.
    Raises TopologyError for what can be called in neither way.
    """
    if not callable(joiner):
        raise TopologyError(
            f"a joiner is a function of (value, other) or (key, value, other), not {joiner!r}"
        )
    try:
        signature = inspect.signature(joiner)
    except ValueError:  # a builtin that does not tell
        return False
    if _fits(signature, 2):
        return False
    if _fits(signature, 3):
        return True
    name = getattr(joiner, "__qualname__", repr(joiner))
    raise TopologyError(
        f"a joiner is called with (value, other) or (key, value, other); {name}{signature} takes neither"
    )


def with_key(joiner: Callable[..., Any], *, takes_key: bool) -> Joiner:
    """The joiner as a function of key, value and other value."""
    return joiner if takes_key else lambda key, value, other: joiner(value, other)


def _fits(signature: inspect.Signature, arguments: int) -> bool:
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return False
    return True
