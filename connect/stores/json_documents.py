"""JSON as Kafka's workers write it into internal topics: JsonConverter's, without schemas."""

from __future__ import annotations

import json
import re
from typing import Any

_ESCAPE = re.compile(r"\\(?:u(00[01][0-9a-f])|.)")
_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


def encode(value: Any, *, sort_keys: bool = False) -> bytes:
    """Return the JSON text, byte for byte as Jackson writes it; a lone surrogate becomes `?`.

    Raises TypeError or ValueError for what JSON cannot hold.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, sort_keys=sort_keys)
    if "\\u00" in text:  # Jackson's hexadecimal digits are upper case
        text = _ESCAPE.sub(lambda m: m[0] if m[1] is None else f"\\u{m[1].upper()}", text)
    if not text.isascii():
        text = _BEYOND_16_BITS.sub(_surrogates, text)
    return text.encode(errors="replace")


def _surrogates(match: re.Match[str]) -> str:
    """Return a character as Jackson writes it: escaped, as two surrogates."""
    above = ord(match[0]) - 0x10000
    return f"\\u{0xD800 + (above >> 10):04X}\\u{0xDC00 + (above & 0x3FF):04X}"


def decode(text: bytes | None) -> Any:
    """Return the value of a JSON text; None and an empty text are None. Raises ValueError."""
    if not text:
        return None
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{len(text)} bytes of JSON are nested too deeply") from None
