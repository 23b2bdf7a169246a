"""Whole numbers as Java reads them."""

from __future__ import annotations

from millstream.kafka_tools.java.java_errors import JavaError


def parse_integer(text: str, bits: int = 32) -> int:
    """Parse an integer of `bits` bits, without spaces or underscores. Raises ValueError."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(text)
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(text)
    return value


def parse_long(text: str) -> int:
    """Parse an integer of 64 bits. Raises ValueError."""
    return parse_integer(text, 64)


def integer_or_java_error(text: str, bits: int = 32) -> int:
    """Parse an integer of `bits` bits. Raises JavaError (NumberFormatException)."""
    try:
        return parse_integer(text, bits)
    except ValueError:
        shown = f'For input string: "{text}"'
        raise JavaError("java.lang.NumberFormatException", shown) from None
