"""Keys, values and places in a scan as text: parsed from a request, and written as JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from streams.errors import StreamsError
from streams.queries import Position, PositionBound, Row
from streams.serdes import (
    Boolean,
    Bytes,
    Double,
    Float,
    Integer,
    Json,
    Long,
    Serde,
    Short,
    String,
    Uuid,
    Windowed,
)
from streams.state import VersionedRecord


class BadRequest(StreamsError):
    """A request has an invalid parameter; the text says what is allowed."""


def read_key(text: str, serde: Serde[Any]) -> Any:
    """Return a key for the serde. Raises BadRequest with the type that it must have.

    Numbers, booleans and UUIDs are plain text, bytes are base64; anything else is JSON.
    """
    try:
        key = _key(text, serde)
        serde.serialize(key)
    except Exception as error:
        raise BadRequest(f"{text!r} is no key of type {type(serde).__name__}: {error}") from error
    return key


def _key(text: str, serde: Serde[Any]) -> Any:
    match serde:
        case String():
            return text
        case Long() | Integer() | Short():
            return int(text)
        case Double() | Float():
            return float(text)
        case Boolean():
            return {"true": True, "false": False}[text]
        case Uuid():
            return UUID(text)
        case Bytes():
            return base64.b64decode(text, validate=True)
        case Json():
            return serde.deserialize(text.encode())
    return msgspec.json.decode(text)


def to_json(value: Any) -> bytes:
    """Return a value as JSON by msgspec (bytes in base64); `_plain` converts types unknown to msgspec."""
    return msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # pydantic
        return value.model_dump(mode="json")
    if hasattr(value, "DESCRIPTOR"):
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value)
    return repr(value)


def row_of(row: Row) -> dict[str, Any]:
    """Return a page's row as plain data, with the bounds of a window or session."""
    facts: dict[str, Any] = {"key": row.key, "value": row.value, "timestamp": row.timestamp}
    if isinstance(row.key, Windowed):
        facts["key"] = row.key.key
        facts["window"] = {"start": row.key.window.start, "end": row.key.window.end}
    return facts


def version_of(version: VersionedRecord[Any]) -> dict[str, Any]:
    """Return a version of a key as plain data; ``valid_to`` is null for the latest."""
    return version._asdict()


def position_of(position: Position) -> dict[str, dict[str, int]]:
    """Return a position as plain data, by topic and partition; `read_bound` reads it."""
    return {
        topic: {str(partition): offset for partition, offset in offsets.items()}
        for topic, offsets in position.offsets.items()
    }


def read_bound(text: str | None) -> PositionBound:
    """Return the bound of a position as answers contain it, none for None. Raises BadRequest if invalid."""
    if text is None:
        return PositionBound.unbounded()
    try:
        return PositionBound.at(Position(msgspec.json.decode(text, type=dict[str, dict[int, int]])))
    except msgspec.DecodeError as error:
        raise BadRequest(
            f'position {text!r} is none: {error}; one is written as {{"topic": {{"0": 5}}}}'
        ) from error


def read_truth(params: Mapping[str, str], name: str) -> bool:
    """Return a boolean parameter of a request, False if missing. Raises BadRequest if invalid."""
    text = params.get(name, "false")
    if text not in ("true", "false"):
        raise BadRequest(f"{name}={text}: true or false")
    return text == "true"


def read_number(name: str, text: str | None, default: int, *, least: int, most: int) -> int:
    """Return an int parameter of a request within bounds, included. Raises BadRequest if invalid."""
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise BadRequest(f"{name}={text}: a whole number from {least} to {most}")
    return number


def place(partition: int, after: bytes | None) -> str:
    """Return the place where a scan continues: in ``partition``, after a stored key."""
    return f"{partition}." + base64.urlsafe_b64encode(after or b"").decode()


def read_place(text: str | None) -> tuple[int, bytes | None]:
    """Parse the text of `place`; None is the beginning. Raises BadRequest if invalid."""
    if text is None:
        return 0, None
    partition, _, after = text.partition(".")
    try:
        return int(partition), base64.b64decode(after, altchars=b"-_", validate=True) or None
    except (ValueError, binascii.Error):
        raise BadRequest(f"next={text}: give what an answer had as its next") from None
