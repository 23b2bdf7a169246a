"""JsonSchemaConverter: JSON behind the id of its JSON Schema in a schema registry."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from connect.api import schema as s
from connect.api.schema import Schema
from connect.config import setting
from connect.converters.base import SchemaAndValue
from connect.converters.json_schema.schemas import ConnectSchemas, json_schema_of
from connect.converters.json_values import from_json, has_decimals, to_json
from connect.converters.registry import (
    RegisteredSchema,
    RegistryClient,
    RegistryConfig,
    RegistryConverter,
    check_covered,
    framed,
    unframed,
)
from connect.errors import DataError

_INFERRED = {str: s.string(), bool: s.boolean(), int: s.int64(), float: s.float64(), bytes: s.bytes_()}


class JsonSchemaConverterConfig(RegistryConfig):
    """Settings of the JSON Schema converter."""

    decimal_format: Literal["BASE64", "NUMERIC"] = setting(
        "How decimals are written: base64 of the unscaled number, or a JSON number.", default="BASE64"
    )


class _Writer(NamedTuple):
    id: int
    convert: Callable[[Any], Any] | None


class _Reader(NamedTuple):
    schema: Schema
    convert: Callable[[Any], Any] | None
    decode: Callable[[bytes], Any]


class JsonSchemaConverter(RegistryConverter[JsonSchemaConverterConfig, _Writer]):
    """`io.confluent.connect.json.JsonSchemaConverter`."""

    CONFIG = JsonSchemaConverterConfig
    KIND = "JSON"

    def __init__(
        self, config: Mapping[str, Any], *, is_key: bool, registry: RegistryClient | None = None
    ) -> None:
        super().__init__(config, JsonSchemaConverterConfig.parse(config), is_key=is_key, registry=registry)
        self._encode = msgspec.json.Encoder(decimal_format="number").encode
        self._decode = msgspec.json.Decoder().decode
        self._decode_exactly = msgspec.json.Decoder(float_hook=decimal.Decimal).decode
        self._reader = lru_cache(self._config.schemas_cache_config)(self._make_reader)

    def _inferred(self, topic: str, value: Any) -> Schema:
        schema = _INFERRED.get(type(value))
        if schema is None:
            raise DataError(
                f"value for topic {topic} is {type(value).__name__} without a schema; a JSON Schema needs one"
            )
        return schema

    def _written(self, writer: _Writer, topic: str, value: Any) -> bytes:
        try:
            return framed(writer.id, self._encode(value if writer.convert is None else writer.convert(value)))
        except (TypeError, ValueError, ArithmeticError, AttributeError) as e:
            raise DataError(f"value for topic {topic} cannot be written as JSON: {e}") from e

    def _make_writer(self, topic: str, schema: Schema) -> _Writer:
        decimals = self._config.decimal_format
        text = self._encode(json_schema_of(schema, decimals)).decode()
        target = self._target(topic, schema, text)
        if target.registered is not None and target.strict:
            check_covered(schema, self._connect_schema(target.registered))
        return _Writer(target.id, to_json(schema, decimals, fill=True))

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the value with the schema that its id names in the registry.

        Raises DataError for JSON that is not of the schema, RetriableError if no registry answers.
        """
        if data is None:
            return SchemaAndValue(None, None)
        schema_id, rest = unframed(topic, data)
        reader = self._reader(schema_id)
        try:
            value = reader.decode(rest)
            if reader.convert is not None:
                value = reader.convert(value)
            reader.schema.check(value)
        except DataError as e:
            raise DataError(f"record of topic {topic} is not of JSON Schema {schema_id}: {e}") from e
        except (msgspec.MsgspecError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as e:
            raise DataError(f"record of topic {topic} is not of JSON Schema {schema_id}: {e!r}") from e
        return SchemaAndValue(reader.schema, value)

    def _make_reader(self, schema_id: int) -> _Reader:
        schema = self._connect_schema(self._registry.by_id(schema_id))
        decode = self._decode_exactly if has_decimals(schema) else self._decode
        return _Reader(schema, from_json(schema, fill=True), decode)

    def _connect_schema(self, registered: RegisteredSchema) -> Schema:
        """Return the Connect schema of one in the registry. Raises DataError if it is not JSON."""
        try:
            document = self._decode(self._text(registered).encode())
        except (msgspec.MsgspecError, RecursionError) as e:
            raise DataError(f"schema {registered.id} is not JSON: {e}") from e
        return ConnectSchemas(document).of(document)
