"""A data type: how the bytes of a key, a value or a header are read and written.

    in the log ──decode──▶ value, for JSON           in the log ──text──▶ what a line shows
    in the log ◀──encode── value, of JSON            in the log ◀──parse── what stands in a line

Null has no type: None is dealt with by whoever calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kafka_client.errors import MillstreamError

JsonValue: TypeAlias = Any
"""What JSON knows: text, numbers, booleans, None, lists and mappings."""

InternalReader: TypeAlias = Callable[[bytes | None, bytes | None], str | None]
"""From a record's key and value to a line of text; None for a record of another kind. Raises WrongData."""


class WrongData(MillstreamError):
    """Bytes, text or a value are not of the type that was asked for; the text says what they are."""


@dataclass(frozen=True, slots=True)
class DataType:
    """Every function raises WrongData for what is not of the type."""

    name: str
    decode: Callable[[bytes], JsonValue]
    text: Callable[[bytes], bytes] | None
    """None: the bytes as they are, which costs nothing."""
    encode: Callable[[JsonValue], bytes]
    parse: Callable[[bytes], bytes] | None
    """None: the bytes as they are."""
