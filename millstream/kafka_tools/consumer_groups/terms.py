"""What the tool's actions share: how an error is told, and the ways to reset offsets."""

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
"""The options that say to which offsets."""


def print_error(message: str) -> None:
    """As the Java tool tells what it could not do; its exit status is 0 all the same."""
    print(f"\nError: {message}")
