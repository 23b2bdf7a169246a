"""ByteArrayConverter: bytes, unchanged."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from connect.api.schema import Schema, Type, bytes_
from connect.converters.base import Converter, SchemaAndValue
from connect.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMA = bytes_(optional=True)


class ByteArrayConverter(Converter):
    """`org.apache.kafka.connect.converters.ByteArrayConverter`."""

    def from_connect(self, topic: str, schema: Schema | None, value: object) -> bytes | None:
        """Return the same bytes. Raises DataError for any other value."""
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(
                f"value for topic {topic} has schema {schema.type.value}, the converter takes bytes"
            )
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, (bytearray, memoryview)):
            return bytes(value)
        raise DataError(f"value for topic {topic} is {type(value).__name__}, the converter takes bytes")

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the same bytes, with an optional bytes schema."""
        return SchemaAndValue(_SCHEMA, data)

    def to_connect_many(
        self, topic: str, datas: Sequence[bytes | None]
    ) -> Sequence[tuple[Schema | None, Any]]:
        """Return the same bytes, with an optional bytes schema."""
        return list(zip(itertools.repeat(_SCHEMA), datas, strict=False))

    def to_arrow(self, topic: str, datas: pa.Array) -> pa.Array | None:
        """Return the same array."""
        return datas
