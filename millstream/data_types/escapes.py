r"""Escapes in separators and format strings: \n \r \t \0 \\ and \xHH; another backslash stands for itself."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([nrt0\\]))")
_PLAIN = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def unescaped(text: str) -> bytes:
    """The bytes that `text` stands for."""
    parts, pos = [], 0
    for found in _ESCAPE.finditer(text):
        parts.append(text[pos : found.start()].encode())
        parts.append(bytes([int(found[1], 16)]) if found[1] else _PLAIN[found[2]])
        pos = found.end()
    parts.append(text[pos:].encode())
    return b"".join(parts)
