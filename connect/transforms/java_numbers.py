"""Numbers as Java reads, writes and converts them."""

from __future__ import annotations

import decimal
import math
import re
import struct

_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?", re.ASCII)
_HEX_FLOAT = re.compile(
    r"([+-]?0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII
)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?")
_NAMED = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_FLOAT_CHARACTERS = "0123456789.+-eE"
_BLANKS = "".join(map(chr, range(33)))


def wrapped(value: int, bits: int) -> int:
    """Return the low `bits` bits as a signed number: Java's narrowing of integers."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def float_to_int(value: float, bits: int) -> int:
    """Return Java's narrowing of a double: to the nearest number of 32 or 64 bits, then the low bits."""
    if value != value:
        return 0
    limit = 1 << (max(bits, 32) - 1)
    truncated = int(value) if math.isfinite(value) else limit * (1 if value > 0 else -1)
    return wrapped(min(max(truncated, -limit), limit - 1), bits)


def parse_int(text: str, bits: int) -> int:
    """Return the number of Byte.parseByte to Long.parseLong. Raises ValueError."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r:.100} is no whole number")
    value = int(text) if len(text) < 100 else 1 << bits
    if value != wrapped(value, bits):
        raise ValueError(f"{text:.100} is out of the range of {bits} bits")
    return value


def parse_float(text: str) -> float:
    """Return the number of Double.parseDouble. Raises ValueError."""
    if not text.strip(_FLOAT_CHARACTERS):  # as nearly always: Python's float() takes the same texts
        return float(text)
    stripped = text.strip(_BLANKS)
    if stripped in _NAMED:
        return _NAMED[stripped]
    if match := _FLOAT.fullmatch(stripped):
        return float(match[1])
    if match := _HEX_FLOAT.fullmatch(stripped):
        return float.fromhex(match[1])
    raise ValueError(f"{text!r:.100} is no number")


def parse_decimal(text: str) -> decimal.Decimal:
    """Return the number of `new BigDecimal(text)`. Raises ValueError."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text!r:.100} is no decimal number")
    return decimal.Decimal(text)


def as_float32(value: float) -> float:
    """Return the nearest number of 32 bits; infinity for one that is too large."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


def float_text(value: float, bits: int = 64) -> str:
    """Return the text of Double.toString, or of Float.toString for 32 bits."""
    if not math.isfinite(value):
        return "NaN" if value != value else f"{'-' if value < 0 else ''}Infinity"
    shortest = repr(float(value)) if bits == 64 else _shortest32(value)
    number = decimal.Decimal(shortest)
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, digits, _ = number.normalize().as_tuple()
    point = number.adjusted()
    text = "".join(map(str, digits))
    minus = "-" if sign else ""
    if not -3 <= point < 7:
        return f"{minus}{text[0]}.{text[1:] or '0'}E{point}"
    if point < 0:
        return f"{minus}0.{'0' * (-point - 1)}{text}"
    text = text.ljust(point + 1, "0")
    return f"{minus}{text[: point + 1]}.{text[point + 1 :] or '0'}"


def _shortest32(value: float) -> str:
    """Return the shortest text of a number of 32 bits that no other number of 32 bits is nearer to."""
    nearest = as_float32(value)
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next((text for text in texts if as_float32(float(text)) == nearest), repr(value))
