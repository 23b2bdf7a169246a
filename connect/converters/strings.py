"""StringConverter: text, whatever the value. What is no string is written as JSON."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from connect.api.schema import Schema, string
from connect.config import Config, setting
from connect.converters.base import Converter, SchemaAndValue
from connect.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMA = string(optional=True)
_TEXTS = frozenset({str, type(None)})


class StringConverterConfig(Config):
    """Settings of the string converter."""

    encoding: str = setting("The character encoding.", key="converter.encoding", default="UTF-8")


class StringConverter(Converter):
    """`org.apache.kafka.connect.storage.StringConverter`."""

    CONFIG = StringConverterConfig

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._encoding = StringConverterConfig.parse(config).encoding
        self._is_utf_8 = _is_utf_8(self._encoding)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return a string's bytes, or the JSON of any other value."""
        if value is None:
            return None
        try:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            return text.encode(self._encoding)
        except (TypeError, UnicodeEncodeError) as e:
            raise DataError(f"value for topic {topic} cannot be written as {self._encoding}: {e}") from e

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the text, with an optional string schema."""
        try:
            return SchemaAndValue(_SCHEMA, None if data is None else str(data, self._encoding))
        except UnicodeDecodeError as e:
            raise DataError(f"record of topic {topic} is not {self._encoding}: {e}") from e

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[Any]
    ) -> list[bytes | None]:
        """Return the bytes of each value, of a column of nothing but strings at once."""
        types = {*map(type, values)}
        if not types <= _TEXTS:
            return super().from_connect_many(topic, schema, values)
        encoding = self._encoding
        try:
            if types == {str} and self._is_utf_8:
                return list(map(str.encode, values))  # in half the time of a loop
            return [None if value is None else value.encode(encoding) for value in values]
        except UnicodeEncodeError:
            return super().from_connect_many(topic, schema, values)  # raises an error that names the topic

    def to_connect_many(
        self, topic: str, datas: Sequence[bytes | None]
    ) -> Sequence[tuple[Schema | None, Any]]:
        """Return the text of each, with an optional string schema."""
        encoding = self._encoding
        try:
            texts = [None if data is None else data.decode(encoding) for data in datas]
        except UnicodeDecodeError:
            return super().to_connect_many(topic, datas)  # raises an error that names the topic
        return list(zip(itertools.repeat(_SCHEMA), texts, strict=False))

    def to_arrow(self, topic: str, datas: pa.Array) -> pa.Array | None:
        """Return the texts; None unless all of them are UTF-8."""
        import pyarrow as pa

        if not self._is_utf_8:
            return None
        try:
            return datas.cast(pa.string())
        except pa.ArrowInvalid:
            return None


def _is_utf_8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        return False  # encoding and decoding will say so
