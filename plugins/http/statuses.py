"""Sets of HTTP statuses, written as numbers and ranges: `429,500-599`."""

from __future__ import annotations


def statuses(text: str) -> frozenset[int]:
    """Return the statuses of a text. Raises ValueError if it is not one."""
    numbers: set[int] = set()
    for part in filter(None, text.replace(" ", "").split(",")):
        first, dash, last = part.partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            raise ValueError(f"{part!r} is neither a status nor a range such as 500-599") from None
        if not 100 <= low <= high <= 599:
            raise ValueError(f"{part!r} must rise, between 100 and 599")
        numbers.update(range(low, high + 1))
    return frozenset(numbers)
