"""The part of `cython` that compiled modules use, for running them as plain Python without Cython.

Nothing here has an effect: types are Python's own, and decorators return their argument. Type checkers read
this module in place of Cython's, which has no types for its decorators.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

_Decorated = TypeVar("_Decorated")
_Value = TypeVar("_Value")

compiled: bool = False
NULL: Any = None


def cclass(decorated: _Decorated) -> _Decorated:
    """Mark a class whose attributes are C values."""
    return decorated


final = cfunc = inline = cclass


def exceptval(*, check: bool) -> Callable[[_Decorated], _Decorated]:
    """Mark a function by whether it may raise an exception."""
    return cclass


class _NoGil:
    """Marks a function, or a block, that runs without the interpreter's lock."""

    def __call__(self, decorated: _Decorated) -> _Decorated:
        return decorated

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        pass


nogil = _NoGil()


def declare(kind: type[_Value], value: _Value) -> _Value:
    """Return the value of a global C variable."""
    return value


def cast(kind: type[_Value], value: Any) -> _Value:
    """Return `value` as it is."""
    return value  # type: ignore[no-any-return]


def address(place: Any) -> Any:
    """Return `place`; plain Python has no addresses."""
    return place


bint: TypeAlias = bool
uchar: TypeAlias = int
uint: TypeAlias = int
longlong: TypeAlias = int
ulonglong: TypeAlias = int
Py_ssize_t: TypeAlias = int
size_t: TypeAlias = int
const: Any = None
p_int: TypeAlias = Any
p_uchar: TypeAlias = Any
p_const_uchar: TypeAlias = Any
p_longlong: TypeAlias = Any
int: TypeAlias = builtins.int
