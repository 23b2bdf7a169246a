"""The return type of plugin methods, which may be plain or async."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeAlias, TypeVar

_T = TypeVar("_T")

MaybeAwaitable: TypeAlias = _T | Awaitable[_T]
"""Return type of a plugin method: the value, or an awaitable of it."""
