"""Avro: plain data of the schema in a file, or data behind a schema's number, which a registry knows.

Values are JSON, bytes in base64, decimals, dates and times as text (`avro_values`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kafka_client.errors import ConfigError
from millstream.data_types.avro_values import value_maker
from millstream.data_types.data_type import DataType, JsonValue, WrongData
from millstream.data_types.registry import Registry, framed, unframed
from millstream.data_types.schema_options import SchemaOptions
from millstream.terminal.status import UsageError


def avro_type(schemas: SchemaOptions) -> DataType:
    """Return the Avro type that the options describe. Raises UsageError if something is missing."""
    try:
        import fastavro
    except ImportError:
        raise UsageError("avro needs fastavro: pip install 'millstream[avro]'") from None
    if schemas.registry is None:
        if schemas.file is None:
            raise UsageError("avro needs --schema-registry, or a schema file (--key-schema, --value-schema)")
        return _plain(_Schema(fastavro, _read_schema(schemas.file)))
    if schemas.file is not None and schemas.subject is None:
        raise UsageError(
            "with --schema-registry avro is read by the schemas there: leave the schema file out"
        )
    return _registered(fastavro, Registry(schemas.registry), schemas)


class _Schema:
    """A schema, parsed."""

    def __init__(self, fastavro: Any, json_form: Any) -> None:
        self._fastavro = fastavro
        named: dict[str, Any] = {}
        try:
            self._parsed = fastavro.parse_schema(json_form, named_schemas=named)
        except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
            raise ConfigError(
                "schema", json.dumps(json_form)[:200], f"not an Avro schema: {error!r}"
            ) from None
        self._named = named
        self._value = value_maker(self._parsed, named, self._fits)

    def _fits(self, value: Any, schema: Any) -> bool:
        of_this = self._named.get(schema, schema) if isinstance(schema, str) else schema
        return bool(self._fastavro.validate(value, of_this, raise_errors=False))

    def read(self, data: bytes, begin: int) -> JsonValue:
        stream = io.BytesIO(data)
        stream.seek(begin)
        try:
            value = self._fastavro.schemaless_reader(stream, self._parsed)
        # Whatever fastavro meets in bytes that are not of the schema.
        except (
            EOFError,
            ValueError,
            IndexError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
        ) as error:
            raise WrongData(f"{len(data)} bytes are not avro of this schema: {error!r}") from None
        if (rest := len(data) - stream.tell()) != 0:
            raise WrongData(f"not avro of this schema: {rest} of {len(data)} bytes are left over")
        return msgspec.to_builtins(value, str_keys=True)

    def written(self, value: JsonValue) -> bytes:
        stream = io.BytesIO()
        try:
            self._fastavro.schemaless_writer(stream, self._parsed, self._value(value))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise WrongData(f"not of the avro schema: {error}") from None
        return stream.getvalue()


def _plain(schema: _Schema) -> DataType:
    return _of(lambda data: schema.read(data, 0), schema.written)


def _registered(fastavro: Any, registry: Registry, schemas: SchemaOptions) -> DataType:
    @cache
    def schema(number: int) -> _Schema:
        return _Schema(fastavro, registry.schema(number))

    @cache
    def to_write() -> int:
        if schemas.schema_id is not None:
            return schemas.schema_id
        assert schemas.subject is not None, "it is read only"
        if schemas.file is not None:
            return registry.register(schemas.subject, _read_schema(schemas.file))
        return registry.newest(schemas.subject)

    def decode(data: bytes) -> JsonValue:
        number, begin = unframed(data)
        return schema(number).read(data, begin)

    def encode(value: JsonValue) -> bytes:
        number = to_write()
        return framed(number, schema(number).written(value))

    return _of(decode, encode)


def _of(decode: Callable[[bytes], JsonValue], encode: Callable[[JsonValue], bytes]) -> DataType:
    """Return the data type; its text form is JSON."""

    def parse(text: bytes) -> bytes:
        try:
            return encode(msgspec.json.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WrongData(f"avro is written as JSON: {error}") from None

    return DataType("avro", decode, lambda data: msgspec.json.encode(decode(data)), encode, parse)


def _read_schema(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise ConfigError("schema", path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError("schema", path, f"not JSON: {error}") from None
