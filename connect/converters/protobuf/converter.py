"""ProtobufConverter: Protobuf behind the id of its schema in a schema registry, and its message indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from connect.api import schema as s
from connect.api.schema import Schema
from connect.converters.base import SchemaAndValue
from connect.converters.protobuf.indexes import read_indexes, write_indexes
from connect.converters.protobuf.settings import ProtobufConverterConfig
from connect.converters.registry import (
    RegisteredSchema,
    RegistryClient,
    RegistryConverter,
    framed,
    unframed,
)
from connect.errors import ConnectError, DataError

__all__ = ["ProtobufConverter", "ProtobufConverterConfig"]

_INFERRED = {str: s.string(), bool: s.boolean(), int: s.int64(), float: s.float64(), bytes: s.bytes_()}
_REFERENCES_MAX = 1000
"""The most files that a schema refers to, with the references of its references."""


class _Writer(NamedTuple):
    id: int
    indexes: bytes
    convert: Callable[[Any], Any]


class _Reader(NamedTuple):
    schema: Schema
    parse: Callable[[bytes], Any]
    convert: Callable[[Any], Any]


class ProtobufConverter(RegistryConverter[ProtobufConverterConfig, _Writer]):
    """`io.confluent.connect.protobuf.ProtobufConverter`. Needs protobuf: the extra `protobuf`."""

    CONFIG = ProtobufConverterConfig
    KIND = "PROTOBUF"

    def __init__(
        self, config: Mapping[str, Any], *, is_key: bool, registry: RegistryClient | None = None
    ) -> None:
        """Create a converter. Raises ConfigError for invalid settings, ConnectError without protobuf."""
        settings = ProtobufConverterConfig.parse(config)
        super().__init__(config, settings, is_key=is_key, registry=registry)
        try:
            from google.protobuf.message import DecodeError
        except ImportError as e:
            raise ConnectError("ProtobufConverter needs protobuf: pip install 'millstream[protobuf]'") from e
        self._decode_error = DecodeError
        self._options = settings.options
        self._file = lru_cache(settings.schemas_cache_config)(self._make_file)
        self._reader = lru_cache(settings.schemas_cache_config)(self._make_reader)

    def _inferred(self, topic: str, value: Any) -> Schema:
        schema = _INFERRED.get(type(value))
        if schema is None:
            kind = type(value).__name__
            raise DataError(f"value for topic {topic} is {kind} without a schema; Protobuf needs one")
        return schema

    def _make_writer(self, topic: str, schema: Schema) -> _Writer:
        from connect.converters.protobuf.files import ProtobufFile, file_of
        from connect.converters.protobuf.printer import proto_text
        from connect.converters.protobuf.to_protobuf import protobuf_of
        from connect.converters.protobuf.to_values import to_message

        proto, full_name = protobuf_of(schema, self._options)
        # protobuf itself checks the numbers and names, before the registry has them.
        own = ProtobufFile(file_of(proto_text(proto), "schema.proto"), {})
        target = self._target(topic, schema, proto_text(proto))
        if target.registered is None:
            file, indexes = own, own.indexes_of(full_name)
        else:
            file = self._file_of(target.registered)
            indexes = file.indexes_like(full_name)
        convert = to_message(schema, file.message(indexes), self._options, strict=target.strict)
        return _Writer(target.id, write_indexes(indexes), convert)

    def _written(self, writer: _Writer, topic: str, value: Any) -> bytes:
        try:
            data = writer.convert(value).SerializeToString()
        except (TypeError, ValueError, AttributeError, ArithmeticError) as e:
            raise DataError(f"value for topic {topic} does not fit its Protobuf schema: {e}") from e
        return framed(writer.id, writer.indexes + data)

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the value with the schema that its id and message indexes name in the registry.

        Raises DataError for bytes that are not of the message, RetriableError if no registry answers.
        """
        if data is None:
            return SchemaAndValue(None, None)
        schema_id, rest = unframed(topic, data)
        indexes, message = read_indexes(topic, rest)
        reader = self._reader(schema_id, indexes)
        try:
            value = reader.convert(reader.parse(message))
        except (self._decode_error, DataError, ValueError, TypeError, ArithmeticError) as e:
            raise DataError(f"record of topic {topic} is not Protobuf of schema {schema_id}: {e}") from e
        return SchemaAndValue(reader.schema, value)

    def _make_reader(self, schema_id: int, indexes: tuple[int, ...]) -> _Reader:
        from connect.converters.protobuf.from_protobuf import ConnectSchemas
        from connect.converters.protobuf.from_values import to_value

        cls = self._file(schema_id).message(indexes)
        schema = ConnectSchemas(self._options).of(cls.DESCRIPTOR)
        return _Reader(schema, cls.FromString, to_value(schema, cls.DESCRIPTOR, self._options))

    def _make_file(self, schema_id: int) -> Any:
        return self._file_of(self._registry.by_id(schema_id))

    def _file_of(self, registered: RegisteredSchema) -> Any:
        """Return the file of a schema, with the files that it refers to."""
        from connect.converters.protobuf.files import ProtobufFile, file_of

        imports: dict[str, Any] = {}
        self._add_references(registered, imports, 0)
        return ProtobufFile(file_of(self._text(registered), f"{registered.id}.proto"), imports)

    def _add_references(self, registered: RegisteredSchema, imports: dict[str, Any], depth: int) -> None:
        """Add the files that a schema refers to, by the names in its imports."""
        from connect.converters.protobuf.files import file_of

        for reference in registered.references:
            if reference.name in imports:
                continue
            if depth > 100 or len(imports) >= _REFERENCES_MAX:
                raise DataError(f"schema {registered.id} refers to too many others, or to itself")
            other = self._registry.version(reference.subject, reference.version)
            imports[reference.name] = file_of(self._text(other), reference.name)
            self._add_references(other, imports, depth + 1)
