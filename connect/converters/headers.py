"""SimpleHeaderConverter: header values as text; the type of a value is inferred from its text."""

from __future__ import annotations

from typing import Any

import msgspec

from connect.api import schema as s
from connect.api.schema import Schema
from connect.converters.base import Converter, HeaderConverter, SchemaAndValue
from connect.errors import DataError

_STRING = s.string()
_OF_TYPE = {bool: s.boolean(), int: s.int64(), float: s.float64(), str: _STRING}


class SimpleHeaderConverter(HeaderConverter):
    """`org.apache.kafka.connect.storage.SimpleHeaderConverter`: strings bare, everything else as JSON.

    When reading, JSON becomes its value and any other text a string. Kafka's own converter infers types in
    the same way, with narrower integers.
    """

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the value as text: a string as it is, any other value as JSON."""
        if value is None or isinstance(value, bytes):
            return value
        try:
            return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
        except TypeError as e:
            raise DataError(f"header {name} for topic {topic}: {e}") from e

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """Return the value with its inferred schema: JSON becomes its value, other text a string."""
        if data is None:
            return SchemaAndValue(None, None)
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            value = data.decode("utf-8", "replace")
        return SchemaAndValue(_OF_TYPE.get(type(value)), value)


class AnyHeaderConverter(HeaderConverter):
    """A converter of values, used for headers. In Kafka, most converters are both."""

    def __init__(self, converter: Converter) -> None:
        super().__init__({})
        self._converter = converter

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes that the converter writes."""
        return self._converter.from_connect(topic, schema, value)

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """Return the value that the converter reads."""
        return self._converter.to_connect(topic, data)
