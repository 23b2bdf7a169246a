"""AvroConverter: binary Avro behind the id of its schema in a schema registry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from connect.api import schema as s
from connect.api.schema import Schema
from connect.config import setting
from connect.converters.avro.from_avro import ConnectSchemas
from connect.converters.avro.to_avro import AvroSchemas
from connect.converters.avro.values import from_avro_value, to_avro_value
from connect.converters.base import SchemaAndValue
from connect.converters.registry import (
    RegisteredSchema,
    RegistryClient,
    RegistryConfig,
    RegistryConverter,
    check_covered,
    framed,
    unframed,
)
from connect.errors import ConnectError, DataError

_INFERRED = {str: s.string(), bool: s.boolean(), int: s.int64(), float: s.float64(), bytes: s.bytes_()}


class AvroConverterConfig(RegistryConfig):
    """Settings of the Avro converter."""

    connect_meta_data: bool = setting(
        "Whether Connect's names, versions, parameters and docs go into Avro schemas.", default=True
    )
    enhanced_avro_schema_support: bool = setting(
        "Whether strings with an enum's parameters are written as enums.", default=False
    )


class _Writer(NamedTuple):
    id: int
    parsed: Any
    convert: Callable[[Any], Any] | None


class _Reader(NamedTuple):
    schema: Schema
    parsed: Any
    convert: Callable[[Any], Any] | None


class AvroConverter(RegistryConverter[AvroConverterConfig, _Writer]):
    """`io.confluent.connect.avro.AvroConverter`. Needs fastavro: the extra `avro`."""

    CONFIG = AvroConverterConfig
    KIND = "AVRO"

    def __init__(
        self, config: Mapping[str, Any], *, is_key: bool, registry: RegistryClient | None = None
    ) -> None:
        """Create a converter. Raises ConfigError for invalid settings, ConnectError without fastavro."""
        super().__init__(config, AvroConverterConfig.parse(config), is_key=is_key, registry=registry)
        try:
            import fastavro
        except ImportError as e:
            raise ConnectError("AvroConverter needs fastavro: pip install 'millstream[avro]'") from e
        self._fastavro: Any = fastavro
        self._reader = lru_cache(self._config.schemas_cache_config)(self._make_reader)

    def _inferred(self, topic: str, value: Any) -> Schema:
        return _inferred(topic, value)

    def _written(self, writer: _Writer, topic: str, value: Any) -> bytes:
        stream = io.BytesIO()
        try:
            converted = value if writer.convert is None else writer.convert(value)
            self._fastavro.schemaless_writer(stream, writer.parsed, converted, strict_allow_default=True)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError) as e:
            raise DataError(f"value for topic {topic} does not fit its Avro schema: {e!r}") from e
        return framed(writer.id, stream.getvalue())

    def _make_writer(self, topic: str, schema: Schema) -> _Writer:
        config = self._config
        avro = AvroSchemas(
            meta_data=config.connect_meta_data, enhanced=config.enhanced_avro_schema_support
        ).of(schema)
        target = self._target(topic, schema, json.dumps(avro, separators=(",", ":")))
        if target.registered is None:
            return _Writer(target.id, self._parsed(avro, {}), to_avro_value(schema))
        named, parsed = self._parsed_with_references(target.registered)
        if target.strict:
            check_covered(schema, ConnectSchemas(named, meta_data=config.connect_meta_data).of(parsed))
        return _Writer(target.id, parsed, to_avro_value(schema))

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the value with the schema that its id names in the registry.

        Raises DataError for bytes that are not of the schema, RetriableError if no registry answers.
        """
        if data is None:
            return SchemaAndValue(None, None)
        schema_id, rest = unframed(topic, data)
        reader = self._reader(schema_id)
        stream = io.BytesIO(rest)
        try:
            value = self._fastavro.schemaless_reader(stream, reader.parsed, None)
            if reader.convert is not None:
                value = reader.convert(value)
        # The errors that fastavro raises for bytes that are not of the schema.
        except (EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as e:
            raise DataError(f"record of topic {topic} is not Avro of schema {schema_id}: {e!r}") from e
        if left := len(rest) - stream.tell():
            raise DataError(
                f"record of topic {topic} is not Avro of schema {schema_id}: {left} bytes are left"
            )
        return SchemaAndValue(reader.schema, value)

    def _make_reader(self, schema_id: int) -> _Reader:
        named, parsed = self._parsed_with_references(self._registry.by_id(schema_id))
        schema = ConnectSchemas(named, meta_data=self._config.connect_meta_data).of(parsed)
        return _Reader(schema, parsed, from_avro_value(schema))

    def _parsed_with_references(self, registered: RegisteredSchema) -> tuple[dict[str, Any], Any]:
        """Return a schema's named types, with those of other schemas, and the schema."""
        named: dict[str, Any] = {}
        self._parse_references(registered, named, set())
        return named, self._parsed(self._loaded(registered), named)

    def _parse_references(
        self, registered: RegisteredSchema, named: dict[str, Any], visited: set[tuple[str, int]]
    ) -> None:
        """Add the named types that a schema uses from other schemas to `named`."""
        for reference in registered.references:
            if (reference.subject, reference.version) in visited:
                continue
            visited.add((reference.subject, reference.version))
            other = self._registry.version(reference.subject, reference.version)
            self._parse_references(other, named, visited)
            self._parsed(self._loaded(other), named)

    def _loaded(self, registered: RegisteredSchema) -> Any:
        """Return a schema of the registry as JSON values. Raises DataError if it is not one of Avro."""
        try:
            return json.loads(self._text(registered))
        except (ValueError, RecursionError) as e:
            raise DataError(f"schema {registered.id} is not JSON: {e}") from e

    def _parsed(self, avro: Any, named: dict[str, Any]) -> Any:
        try:
            return self._fastavro.parse_schema(avro, named_schemas=named)
        except (self._fastavro.schema.SchemaParseException, self._fastavro.schema.UnknownType) as e:
            raise DataError(f"not an Avro schema: {e!r}") from e


def _inferred(topic: str, value: Any) -> Schema:
    schema = _INFERRED.get(type(value))
    if schema is None:
        raise DataError(f"value for topic {topic} is {type(value).__name__} without a schema; Avro needs one")
    return schema
