"""Protobuf: messages of a compiled set of descriptors, in lines and in JSON by proto3's mapping to JSON.

Messages stand alone in a record. Behind a registry's header (schema id, message indexes) they are not read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from logd.errors import ConfigError
from millstream.data_types.data_type import DataType, JsonValue, WrongData
from millstream.data_types.find import SchemaOptions
from millstream.terminal.status import NotFound, UsageError


def protobuf_type(schemas: SchemaOptions) -> DataType:
    """Protobuf as the options describe it; UsageError says what is missing."""
    try:
        from google.protobuf import json_format, message
    except ImportError:
        raise UsageError("protobuf needs protobuf: pip install 'millstream[protobuf]'") from None
    if schemas.file is None or schemas.message is None:
        raise UsageError(
            "protobuf needs --value-schema, a file of protoc --include_imports --descriptor_set_out=FILE, "
            "and --value-message with the message's full name; for keys --key-schema and --key-message"
        )
    cls = _message_class(schemas.file, schemas.message)

    def decode(data: bytes) -> JsonValue:
        try:
            return json_format.MessageToDict(cls.FromString(data), preserving_proto_field_name=True)
        except message.DecodeError:
            raise WrongData(f"{len(data)} bytes are not a {schemas.message}") from None

    def parse(text: bytes) -> bytes:
        try:
            return bytes(json_format.Parse(text, cls()).SerializeToString())
        except (json_format.ParseError, UnicodeDecodeError) as error:
            raise WrongData(f"not a {schemas.message} in JSON: {error}") from None

    return DataType(
        "protobuf",
        decode,
        lambda data: json.dumps(decode(data), ensure_ascii=False, separators=(",", ":")).encode(),
        lambda value: parse(json.dumps(value).encode()),
        parse,
    )


def _message_class(path: Path, name: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    except OSError as error:
        raise ConfigError("schema", path, f"cannot be read: {error.strerror}") from None
    except message.DecodeError:
        raise ConfigError("schema", path, "not a set of descriptors, as protoc writes it") from None
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        known = [f"{file.package}.{each.name}" for file in found.file for each in file.message_type]
        raise NotFound(f"there is no message {name} in {path}: it has {', '.join(known)}") from None
