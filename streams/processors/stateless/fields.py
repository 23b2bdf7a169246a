"""Functions that fill missing fields of dict values, or drop fields.

A dict is never changed in place, since other operators may hold it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any


def filling(defaults: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return a function that sets fields that are missing or None to their defaults; a null stays null."""
    defaults = deepcopy(dict(defaults))

    def fill(value: Any) -> Any:
        if value is None:
            return None
        filled = _copied(value, "fill()")
        for field, default in defaults.items():
            if filled.get(field) is None:
                filled[field] = deepcopy(default)
        return filled

    return fill


def dropping(fields: Sequence[str], *, ignore_missing: bool) -> Callable[[Any], Any]:
    """Return a function that drops fields; it raises KeyError for a missing one unless ``ignore_missing``."""

    def drop(value: Any) -> Any:
        if value is None:
            return None
        copy = _copied(value, "drop()")
        for field in fields:
            if field in copy:
                del copy[field]
            elif not ignore_missing:
                raise KeyError(
                    f"drop(): no field {field!r} among {list(value)}; errors='ignore' allows for that"
                )
        return copy

    return drop


def _copied(value: Any, caller: str) -> dict[str, Any]:
    try:
        return {**value}
    except TypeError:
        raise TypeError(
            f"{caller} is for values that are dicts, not for a {type(value).__name__}: use map_values()"
        ) from None
