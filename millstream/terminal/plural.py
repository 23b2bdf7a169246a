"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 record`, `2,000 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
