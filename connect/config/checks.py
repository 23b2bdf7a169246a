"""Checks of settings' values, for `setting(..., check=...)`."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence


def no_control_characters(value: str) -> None:
    """Raise ValueError, in Kafka's words, for a text with control characters."""
    codes = [str(ord(each)) for each in value if unicodedata.category(each) == "Cc"]
    if codes:
        raise ValueError(
            f"String may not contain control sequences but had the following ASCII chars: {', '.join(codes)}"
        )


def distinct(aliases: Sequence[str]) -> None:
    """Raise ValueError, in Kafka's words, if one of a list of aliases is there twice."""
    if len(set(aliases)) < len(aliases):
        raise ValueError("Duplicate alias provided.")


def at_least(least: int) -> Callable[[float], None]:
    """Return a check that raises ValueError for a number below `least`."""
    allowed = f"must be at least {least}" if least > 0 else f"must be {least} or more"

    def check(value: float) -> None:
        if value < least:
            raise ValueError(allowed)

    return check


def one_of(*choices: str) -> Callable[[str], None]:
    """Return a check that raises ValueError for a text that is none of `choices`, in any letter case."""

    def check(value: str) -> None:
        if value.strip().lower() not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")

    return check
