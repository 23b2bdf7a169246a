"""The types by the names that `--key-type`, `--value-type` and `--header-type` take."""

from __future__ import annotations

from enum import StrEnum

from millstream.data_types.data_type import DataType
from millstream.data_types.numbers import DOUBLE, FLOAT, INT, LONG, SHORT
from millstream.data_types.plain import BASE64, BYTES, HEX, JSON, STRING

PLAIN_TYPES: dict[str, DataType] = {
    each.name: each for each in (STRING, INT, LONG, SHORT, FLOAT, DOUBLE, BYTES, HEX, BASE64, JSON)
}


class TypeName(StrEnum):
    """The values of the type options."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    SHORT = "short"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    """The bytes unchanged; base64 in JSON."""
    HEX = "hex"
    BASE64 = "base64"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
