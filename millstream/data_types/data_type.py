"""A data type: how the bytes of a key, a value or a header are read and written.

    in the log ──decode──▶ value, for JSON           in the log ──text──▶ what a line shows
    in the log ◀──encode── value, of JSON            in the log ◀──parse── what a line shows

Null has no type: callers handle None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kafka_client.errors import MillstreamError

JsonValue: TypeAlias = Any
"""A JSON value: text, number, boolean, None, list or mapping."""

InternalReader: TypeAlias = Callable[[bytes | None, bytes | None], str | None]
"""A function from a record's key and value to a line of text; None for records of other types."""


class WrongData(MillstreamError):
    """Bytes, text or a value are not of the requested type; the text shows them."""


@dataclass(frozen=True, slots=True)
class DataType:
    """A data type. Every function raises WrongData for bytes, text or values of another type."""

    name: str
    decode: Callable[[bytes], JsonValue]
    text: Callable[[bytes], bytes] | None
    """The text of the bytes; None: the bytes are the text."""
    encode: Callable[[JsonValue], bytes]
    parse: Callable[[bytes], bytes] | None
    """The bytes of the text; None: the text is the bytes."""
