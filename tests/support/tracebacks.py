"""Tracebacks in what a process has said: none may be there that the test does not expect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_BEGINNING = re.compile(r"^[ |+]*Traceback \(most recent call last\):\n", re.MULTILINE)
"""At the beginning of a line: the trace of a failed task inside a line of JSON is a report to the user."""


def tracebacks(said: str) -> Iterator[tuple[str, str]]:
    """Each traceback: the error it ends with, as ``Class: text``, and itself with all that comes after it."""
    for piece in _BEGINNING.split(said)[1:]:
        error = next((line for line in piece.splitlines() if line and not line[0].isspace()), "no error")
        yield error, piece


def assert_no_tracebacks(said: str, expected: Sequence[str] = ()) -> None:
    """AssertionError with the first traceback whose error names none of ``expected``."""
    for error, whole in tracebacks(said):
        assert any(part in error for part in expected), f"a traceback that ends with {error}\n{whole}"
