"""Bare JSON texts checked together, so that they may pass through a worker as they are."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_NULL = b"null"
_decode_lines = msgspec.json.Decoder(msgspec.Raw).decode_lines  # checks the syntax, and makes no values


def json_lines(texts: Sequence[bytes | None]) -> list[bytes | None] | None:
    """Return JSON texts as they are, None for null. Return None if they have to be read one by one.

    These are texts with line ends inside, empty ones, and those that are not valid JSON. Numbers pass that a
    double does not hold.
    """
    present = [text for text in texts if text is not None]
    lines = b"\n".join(present)
    if lines.count(b"\n") + 1 != len(present):
        return None
    try:
        str(lines, "utf-8")
        # A value that went on in the next line would leave fewer values than lines.
        values = _decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if len(values) != len(present):
        return None
    if lines.count(_NULL):
        return [None if text is None or text.strip() == _NULL else text for text in texts]
    return list(texts)
