"""Checks of settings' values, for `setting(..., check=...)`."""

from __future__ import annotations

from collections.abc import Callable


def at_least(least: int) -> Callable[[float], None]:
    """Return a check that raises ValueError for a number below `least`."""
    allowed = f"must be at least {least}" if least > 0 else f"must be {least} or more"

    def check(value: float) -> None:
        if value < least:
            raise ValueError(allowed)

    return check
