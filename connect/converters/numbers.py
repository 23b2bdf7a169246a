"""Converters of single numbers and booleans: big-endian bytes, as Kafka's serializers write them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from connect.api import schema as s
from connect.api.schema import Schema, Type
from connect.converters.base import Converter, SchemaAndValue
from connect.errors import DataError


class NumberConverter(Converter):
    """The base of the converters below. As in Kafka, a value's schema is not looked at."""

    FORMAT: ClassVar[str]
    """The format of `struct` that packs a value."""
    SCHEMA: ClassVar[Schema]
    TYPES: ClassVar[tuple[type, ...]] = (int,)
    """The Python types of values."""

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._packed = struct.Struct(self.FORMAT)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the number's bytes; None is a null. Raises DataError for another type or range."""
        if value is None:
            return None
        if not isinstance(value, self.TYPES) or isinstance(value, bool):
            raise DataError(
                f"value for topic {topic} is {type(value).__name__}, {type(self).__name__} takes "
                f"{' or '.join(each.__name__ for each in self.TYPES)}"
            )
        try:
            return self._packed.pack(value)
        except (struct.error, OverflowError) as e:
            raise DataError(
                f"value for topic {topic} is {value}, out of range for {self.SCHEMA.type.value}"
            ) from e

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the number, with an optional schema. Raises DataError for bytes of another length."""
        if data is None:
            return SchemaAndValue(self.SCHEMA, None)
        if len(data) != self._packed.size:
            raise DataError(
                f"record of topic {topic} has {len(data)} bytes, "
                f"{type(self).__name__} takes {self._packed.size}"
            )
        return SchemaAndValue(self.SCHEMA, self._packed.unpack(data)[0])

    def to_connect_many(
        self, topic: str, datas: Sequence[bytes | None]
    ) -> Sequence[tuple[Schema | None, Any]]:
        """Return the number of each, with an optional schema."""
        try:
            column = struct.unpack(f">{len(datas)}{self.FORMAT[-1]}", b"".join(datas))  # type: ignore[arg-type]
        except (struct.error, TypeError):
            return super().to_connect_many(topic, datas)
        if {*map(len, datas)} != {self._packed.size}:  # type: ignore[arg-type]
            return super().to_connect_many(topic, datas)
        return list(zip(itertools.repeat(self.SCHEMA), column, strict=False))


class ShortConverter(NumberConverter):
    """`org.apache.kafka.connect.converters.ShortConverter`: two bytes."""

    FORMAT = ">h"
    SCHEMA = s.int16(optional=True)


class IntegerConverter(NumberConverter):
    """`org.apache.kafka.connect.converters.IntegerConverter`: four bytes."""

    FORMAT = ">i"
    SCHEMA = s.int32(optional=True)


class LongConverter(NumberConverter):
    """`org.apache.kafka.connect.converters.LongConverter`: eight bytes."""

    FORMAT = ">q"
    SCHEMA = s.int64(optional=True)


class FloatConverter(NumberConverter):
    """`org.apache.kafka.connect.converters.FloatConverter`: four bytes, IEEE 754."""

    FORMAT = ">f"
    SCHEMA = s.float32(optional=True)
    TYPES = (float, int)


class DoubleConverter(NumberConverter):
    """`org.apache.kafka.connect.converters.DoubleConverter`: eight bytes, IEEE 754."""

    FORMAT = ">d"
    SCHEMA = s.float64(optional=True)
    TYPES = (float, int)


class BooleanConverter(Converter):
    """`org.apache.kafka.connect.converters.BooleanConverter`: one byte, 1 or 0 (KIP-907)."""

    SCHEMA: ClassVar[Schema] = s.boolean(optional=True)

    def from_connect(self, topic: str, schema: Schema | None, value: object) -> bytes | None:
        """Return one byte; None is a null. Raises DataError for another type, or another schema."""
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(
                f"value for topic {topic} has schema {schema.type.value}, BooleanConverter takes boolean"
            )
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataError(f"value for topic {topic} is {type(value).__name__}, BooleanConverter takes bool")
        return b"\x01" if value else b"\x00"

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the boolean, with an optional schema. Raises DataError for bytes other than 0 and 1."""
        if data is None:
            return SchemaAndValue(self.SCHEMA, None)
        if data not in (b"\x00", b"\x01"):
            raise DataError(
                f"record of topic {topic} is {data[:8]!r}, BooleanConverter takes one byte, 0 or 1"
            )
        return SchemaAndValue(self.SCHEMA, data == b"\x01")
