r"""Escapes in separators and format strings: \n \r \t \0 \\ and \xHH; other backslashes are literal."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([nrt0\\]))")
_PLAIN = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def unescaped(text: str) -> bytes:
    """Return the bytes of `text` with its escapes replaced."""
    parts, pos = [], 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[pos : match.start()].encode())
        parts.append(bytes([int(match[1], 16)]) if match[1] else _PLAIN[match[2]])
        pos = match.end()
    parts.append(text[pos:].encode())
    return b"".join(parts)
