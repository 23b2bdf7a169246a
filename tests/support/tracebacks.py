"""Tracebacks in what a process has said: none may be there that the test does not expect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_BEGINNING = re.compile(r"^[ |+]*Traceback \(most recent call last\):\n", re.MULTILINE)
"""At the beginning of a line: the trace of a failed task inside a line of JSON is a report to the user."""


def tracebacks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each traceback: the error it ends with, as ``Class: text``, and its text up to the next one."""
    for piece in _BEGINNING.split(text)[1:]:
        error = next((line for line in piece.splitlines() if line and not line[0].isspace()), "no error")
        yield error, piece


def assert_no_tracebacks(text: str, expected: Sequence[str] = ()) -> None:
    """AssertionError with the first traceback whose error names none of ``expected``."""
    for error, whole in tracebacks(text):
        assert any(part in error for part in expected), f"a traceback that ends with {error}\n{whole}"
