"""SimpleHeaderConverter: header values as text; the type of a value is inferred from its text."""

from __future__ import annotations

from typing import Any

from connect.api.schema import Schema
from connect.converters.base import Converter, HeaderConverter, SchemaAndValue
from connect.converters.value_texts import text_of
from connect.converters.values import parse_text


class SimpleHeaderConverter(HeaderConverter):
    """`org.apache.kafka.connect.storage.SimpleHeaderConverter`: values as texts, without their schemas."""

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the value's text. Raises DataError for a value of no type of Connect."""
        return None if value is None else text_of(schema, value).encode("utf-8", "replace")

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """Return the value that the text means, with its inferred schema."""
        if data is None:
            return SchemaAndValue(None, None)
        return SchemaAndValue(*parse_text(data.decode("utf-8", "replace")))


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
