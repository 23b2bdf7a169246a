"""Plugin methods may be plain or async: the type that says so."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeAlias, TypeVar

_T = TypeVar("_T")

MaybeAwaitable: TypeAlias = _T | Awaitable[_T]
"""What a plugin method returns: the value, or an awaitable of it."""
