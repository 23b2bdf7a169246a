"""Text, bytes and JSON."""

from __future__ import annotations

import base64
import binascii

import msgspec

from millstream.data_types.data_type import DataType, JsonValue, WrongData


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _encode_text(value: JsonValue) -> bytes:
    """Return the bytes of text; any other value as JSON."""
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _decode_json(data: bytes) -> JsonValue:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WrongData(f"{_shown(data)} is not JSON: {error}") from None


def _checked_json(data: bytes) -> bytes:
    _decode_json(data)
    return data


def _decode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _parse_base64(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise WrongData(f"{_shown(text)} is not base64") from None


def _parse_hex(text: bytes) -> bytes:
    try:
        return bytes.fromhex(text.decode())
    except ValueError:
        raise WrongData(f"{_shown(text)} is not hex: an even number of digits 0-9, a-f") from None


def _of_text(value: JsonValue) -> bytes:
    if not isinstance(value, str):
        raise WrongData(f"{msgspec.json.encode(value).decode()} is not text in quotes")
    return value.encode()


def _shown(data: bytes) -> str:
    """Return the first 40 bytes as quoted text."""
    text = data[:40].decode("utf-8", "replace")
    return repr(text if len(data) <= 40 else text + "…")


STRING = DataType("string", _decode_text, None, _encode_text, None)
BYTES = DataType("bytes", _decode_base64, None, lambda value: _parse_base64(_of_text(value)), None)
HEX = DataType(
    "hex", bytes.hex, lambda data: data.hex().encode(), lambda value: _parse_hex(_of_text(value)), _parse_hex
)
BASE64 = DataType(
    "base64", _decode_base64, base64.b64encode, lambda value: _parse_base64(_of_text(value)), _parse_base64
)
JSON = DataType("json", _decode_json, _checked_json, msgspec.json.encode, _checked_json)
