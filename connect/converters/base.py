"""What a converter is. The worker converts whole batches; a converter of one value at a time is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from connect.api.schema import Schema
from connect.config import Config


class SchemaAndValue(NamedTuple):
    """A value with its schema, None if it has none."""

    schema: Schema | None
    value: Any


class Converter:
    """Between Connect values and bytes. DataError for a value or bytes that do not fit."""

    CONFIG: ClassVar[type[Config] | None] = None
    """The declaration of its settings, if it has one: keys that are not in it get a warning."""

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        """`config` holds the converter's own settings, without the `key.converter.` prefix."""
        self.is_key = is_key

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Bytes for the log; None is a null."""
        raise NotImplementedError

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The value the bytes stand for."""
        raise NotImplementedError

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[Any]
    ) -> list[bytes | None]:
        """`from_connect` for values that share a topic and a schema; override it where a batch is cheaper."""
        return [self.from_connect(topic, schema, value) for value in values]

    def to_connect_many(
        self, topic: str, datas: Sequence[bytes | None]
    ) -> Sequence[tuple[Schema | None, Any]]:
        """`to_connect` for a batch, as pairs of schema and value; override it where a batch is cheaper."""
        return [self.to_connect(topic, data) for data in datas]


class HeaderConverter:
    """Between header values and bytes."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """`config` holds the settings under `header.converter.`."""

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """Bytes for the log."""
        raise NotImplementedError

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """The value the bytes stand for."""
        raise NotImplementedError
