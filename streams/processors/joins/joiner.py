"""Joiners: functions of value and other value, or of key, value and other value (KIP-149)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Joiner: TypeAlias = Callable[[Any, Any, Any], Any]
"""Returns the result of a key, a value and the other side's value."""


def with_key(joiner: Callable[..., Any], *, takes_key: bool) -> Joiner:
    """Return the joiner as a function of key, value and other value."""
    return joiner if takes_key else lambda key, value, other: joiner(value, other)
