"""Protobuf: messages in lines and in JSON, by proto3's mapping to JSON.

Messages stand alone in a record, of a compiled set of descriptors; or behind a registry's frame, which names
the schema and the message in it (`registered_file`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from kafka_client.errors import ConfigError
from millstream.data_types.data_type import DataType, JsonValue, WrongData
from millstream.data_types.registered_file import RegisteredFile, indexes_read, indexes_written
from millstream.data_types.registry import Registry, framed, unframed
from millstream.data_types.schema_options import SchemaOptions
from millstream.terminal.status import NotFound, UsageError


def protobuf_type(schemas: SchemaOptions) -> DataType:
    """Return the Protobuf type that the options describe. Raises UsageError if something is missing."""
    try:
        from google.protobuf import json_format  # noqa: F401
    except ImportError:
        raise UsageError("protobuf needs protobuf: pip install 'millstream[protobuf]'") from None
    if schemas.registry is not None:
        if schemas.file is not None:
            raise UsageError("protobuf takes --schema-registry or a set of descriptors, not both")
        return _registered(Registry(schemas.registry), schemas)
    if schemas.file is None or schemas.message is None:
        raise UsageError(
            "protobuf needs --schema-registry; or --value-schema, a file of protoc --include_imports "
            "--descriptor_set_out=FILE, and --value-message with the message's full name; for keys "
            "--key-schema and --key-message"
        )
    cls = _message_class(schemas.file, schemas.message)
    return _of(lambda data: _read(cls, data, 0), lambda text: _parsed(cls, text))


def _of(decode: Callable[[bytes], JsonValue], parse: Callable[[bytes], bytes]) -> DataType:
    return DataType(
        "protobuf",
        decode,
        lambda data: json.dumps(decode(data), ensure_ascii=False, separators=(",", ":")).encode(),
        lambda value: parse(json.dumps(value).encode()),
        parse,
    )


def _read(cls: Any, data: bytes, begin: int) -> JsonValue:
    from google.protobuf import json_format, message

    try:
        return json_format.MessageToDict(cls.FromString(data[begin:]), preserving_proto_field_name=True)
    except message.DecodeError:
        raise WrongData(f"{len(data) - begin} bytes are not a {cls.DESCRIPTOR.full_name}") from None


def _parsed(cls: Any, text: bytes) -> bytes:
    from google.protobuf import json_format

    try:
        return bytes(json_format.Parse(text, cls()).SerializeToString())
    except (json_format.ParseError, UnicodeDecodeError) as error:
        raise WrongData(f"not a {cls.DESCRIPTOR.full_name} in JSON: {error}") from None


def _registered(registry: Registry, schemas: SchemaOptions) -> DataType:
    @cache
    def schema(number: int) -> RegisteredFile:
        return RegisteredFile(registry, number)

    @cache
    def to_write() -> tuple[int, Any, bytes]:
        number = schemas.schema_id
        if number is None:
            assert schemas.subject is not None, "it is read only"
            number = registry.newest(schemas.subject)
        indexes = schema(number).indexes_of(schemas.message)
        return number, schema(number).message(indexes), indexes_written(indexes)

    def decode(data: bytes) -> JsonValue:
        number, begin = unframed(data)
        indexes, begin = indexes_read(data, begin)
        return _read(schema(number).message(indexes), data, begin)

    def parse(text: bytes) -> bytes:
        number, cls, indexes = to_write()
        return framed(number, indexes + _parsed(cls, text))

    return _of(decode, parse)


def _message_class(path: Path, name: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    try:
        descriptors = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    except OSError as error:
        raise ConfigError("schema", path, f"cannot be read: {error.strerror}") from None
    except message.DecodeError:
        raise ConfigError("schema", path, "not a set of descriptors, as protoc writes it") from None
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        names = [f"{file.package}.{each.name}" for file in descriptors.file for each in file.message_type]
        raise NotFound(f"there is no message {name} in {path}: it has {', '.join(names)}") from None
