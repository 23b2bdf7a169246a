"""Numbers as Java writes them."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite


def shown_double(value: float) -> str:
    """Return the text of Double.toString: 0.5, 1024.0, 1.0E7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    if not isfinite(value):
        return "NaN" if value != value else f"{'-' if value < 0 else ''}Infinity"
    number = Decimal(repr(value)).normalize()
    digits = "".join(map(str, number.as_tuple().digits))
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"
