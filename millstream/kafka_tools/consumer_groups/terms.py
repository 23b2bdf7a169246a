"""The form of the tool's error lines, and the options that choose the new offsets of a reset."""

from __future__ import annotations

SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
"""Options that say which offsets a group is reset to."""


def print_error(message: str) -> None:
    """Print an error as the Java tool does. The exit status stays 0."""
    print(f"\nError: {message}")
