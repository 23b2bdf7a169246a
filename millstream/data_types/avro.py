"""Avro: plain data of the schema in a file, or data behind a schema's number, which a registry knows.

Values are JSON. Bytes are shown in base64, times and decimals as text: values with such fields can be read
here, and not written.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from logd.errors import ConfigError
from millstream.data_types.data_type import DataType, JsonValue, WrongData
from millstream.data_types.find import SchemaOptions
from millstream.data_types.registry import Registry, framed, unframed
from millstream.terminal.status import UsageError


def avro_type(schemas: SchemaOptions) -> DataType:
    """Avro as the options describe it; UsageError says what is missing."""
    try:
        import fastavro
    except ImportError:
        raise UsageError("avro needs fastavro: pip install 'millstream[avro]'") from None
    if (schemas.file is None) == (schemas.registry is None):
        raise UsageError(
            "avro needs --schema-registry, or a schema file (--key-schema, --value-schema): one of them"
        )
    if schemas.file is not None:
        parsed = fastavro.parse_schema(_read_schema(schemas.file))
        return _plain(fastavro, parsed)
    return _registered(fastavro, Registry(schemas.registry or ""), schemas.schema_id)


def _plain(fastavro: Any, parsed: Any) -> DataType:
    return _of(
        lambda data: _read(fastavro, parsed, data, 0),
        lambda value: _write(fastavro, parsed, value),
    )


def _registered(fastavro: Any, registry: Registry, schema_id: int | None) -> DataType:
    parsed: dict[int, Any] = {}

    def schema(number: int) -> Any:
        if number not in parsed:
            parsed[number] = fastavro.parse_schema(registry.schema(number))
        return parsed[number]

    def decode(data: bytes) -> JsonValue:
        number, begin = unframed(data)
        return _read(fastavro, schema(number), data, begin)

    def encode(value: JsonValue) -> bytes:
        if schema_id is None:
            raise UsageError("writing avro by a registry needs --key-schema-id or --value-schema-id")
        return framed(schema_id, _write(fastavro, schema(schema_id), value))

    return _of(decode, encode)


def _of(decode: Callable[[bytes], JsonValue], encode: Callable[[JsonValue], bytes]) -> DataType:
    """In lines Avro is JSON."""

    def parse(text: bytes) -> bytes:
        try:
            return encode(msgspec.json.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WrongData(f"avro is written as JSON: {error}") from None

    return DataType("avro", decode, lambda data: msgspec.json.encode(decode(data)), encode, parse)


def _read(fastavro: Any, schema: Any, data: bytes, begin: int) -> JsonValue:
    stream = io.BytesIO(data)
    stream.seek(begin)
    try:
        value = fastavro.schemaless_reader(stream, schema)
    # Whatever fastavro meets in bytes that are not of the schema.
    except (EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise WrongData(f"{len(data)} bytes are not avro of this schema: {error!r}") from None
    if (rest := len(data) - stream.tell()) != 0:
        raise WrongData(f"not avro of this schema: {rest} of {len(data)} bytes are left over")
    return msgspec.to_builtins(value, str_keys=True)


def _write(fastavro: Any, schema: Any, value: JsonValue) -> bytes:
    stream = io.BytesIO()
    try:
        fastavro.schemaless_writer(stream, schema, value)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise WrongData(f"not of the avro schema: {error}") from None
    return stream.getvalue()


def _read_schema(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise ConfigError("schema", path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError("schema", path, f"not JSON: {error}") from None
