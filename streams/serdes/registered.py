"""Serdes of values preceded by a schema's id, as Confluent's serializers write them:

    0 │ int32: schema id │ Avro, or JSON
    0 │ int32: schema id │ message indexes │ Protobuf

Message indexes are zigzag varints: their count, then the outermost message's index in its file, the next
one's index in that message, and so on. A single 0 means the file's first message.

A schema is registered when its first value is written, unless ``schema_id`` is given. Its subject is that of
the topic, ``<topic>-key`` or ``<topic>-value`` (TopicNameStrategy), or ``subject``. With
``subject=record_name`` it is the record's full name (RecordNameStrategy).
"""

from __future__ import annotations

import base64
import copy
import json
import struct
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.varint import read_zigzag, varint
from streams.serdes.avro import Avro, AvroSchema
from streams.serdes.base import Serde
from streams.serdes.json import Json
from streams.serdes.protobuf import Message, Protobuf
from streams.serdes.pydantic import PydanticJson, is_pydantic_model
from streams.serdes.registry import CACHE_MAX, LruCache, Registry, Schema

MAGIC = 0
DEPTH_MAX = 100
"""The most levels of nested message declarations, as in protobuf itself."""
_FRAME = struct.Struct(">bi")

T = TypeVar("T")
M = TypeVar("M", bound=Message)

Subject = str | Callable[[str], str] | None
"""The subject, or a function that returns it for the record's full name; None: that of the topic."""


def record_name(name: str) -> str:
    """Return the record's full name as the subject (RecordNameStrategy)."""
    return name


class _Registered(Serde[T]):
    def __init__(self, registry: Registry, name: str, subject: Subject, schema_id: int | None) -> None:
        self._registry = registry
        self._name = name
        self._subject = subject(name) if callable(subject) else subject
        self._head = None if schema_id is None else _FRAME.pack(MAGIC, schema_id)

    def of_topic(self, topic: str, *, is_key: bool) -> Self:
        """Return the serde that registers under the topic's subject; itself if it has a subject or an id."""
        if self._subject is not None or self._head is not None:
            return self
        of_topic = copy.copy(self)
        of_topic._subject = f"{topic}-{'key' if is_key else 'value'}"
        return of_topic

    @abstractmethod
    def _schema(self) -> Schema:
        """Return the schema to register."""

    def _framed(self, data: bytes) -> bytes:
        if self._head is None:
            if self._subject is None:
                raise ValueError(
                    f"{self._name} is written where its topic is not known: give the serde a subject="
                )
            self._head = _FRAME.pack(MAGIC, self._registry.register(self._subject, self._schema()))
        return self._head + data


class RegisteredAvro(_Registered[Any]):
    """Avro records as dicts.

    Values are written by ``schema``, and read as ``reader_schema``, by default ``schema`` too (Avro's schema
    resolution). Without ``schema`` the serde only reads, each value as the schema that it was written by.
    """

    def __init__(
        self,
        registry: Registry,
        schema: AvroSchema | None = None,
        *,
        reader_schema: AvroSchema | None = None,
        subject: Subject = None,
        schema_id: int | None = None,
    ) -> None:
        parsed = json.loads(schema) if isinstance(schema, str) else schema
        super().__init__(registry, _avro_name(parsed), subject, schema_id)
        self._json = parsed
        self._writer = None if parsed is None else Avro(parsed)
        self._reader_schema = parsed if reader_schema is None else reader_schema
        self._readers: LruCache[int, Avro] = LruCache(CACHE_MAX)

    def _schema(self) -> Schema:
        return Schema("AVRO", json.dumps(self._json))

    def serialize(self, value: Any) -> bytes:
        if self._writer is None:
            raise ValueError("RegisteredAvro without a schema reads only: give it schema=")
        return self._framed(self._writer.serialize(value))

    def deserialize(self, data: bytes) -> Any:
        id, begin = unframed(data)
        return self._readers.get(id, self._reader).deserialize(data[begin:])

    def _reader(self, id: int) -> Avro:
        kind, text = self._registry.get(id)
        if kind != "AVRO":
            raise ValueError(f"schema {id} is one of {kind}, not of AVRO")
        return Avro(text, self._reader_schema)


class RegisteredJson(_Registered[T]):
    """JSON, checked against a type. ``schema``: its JSON Schema, by default generated from the type."""

    def __init__(
        self,
        registry: Registry,
        type: type[T] | Any,
        *,
        schema: str | Mapping[str, Any] | None = None,
        subject: Subject = None,
        schema_id: int | None = None,
    ) -> None:
        super().__init__(registry, getattr(type, "__name__", str(type)), subject, schema_id)
        inner: Serde[Any] = PydanticJson(type) if is_pydantic_model(type) else Json(type)
        self._inner = inner
        self.immutable = inner.immutable
        if schema is None:
            model: Any = type
            schema = model.model_json_schema() if is_pydantic_model(type) else msgspec.json.schema(type)
        self._text = schema if isinstance(schema, str) else json.dumps(schema)

    def _schema(self) -> Schema:
        return Schema("JSON", self._text)

    def serialize(self, value: T) -> bytes:
        return self._framed(self._inner.serialize(value))

    def deserialize(self, data: bytes) -> T:
        _, begin = unframed(data)
        value: T = self._inner.deserialize(data[begin:])
        return value


class RegisteredProtobuf(_Registered[M]):
    """Protobuf messages of a generated class.

    If its file imports files other than Google's own, give the ``schema_id``: the imports must be registered
    before, by the registry's tools.
    """

    def __init__(
        self, registry: Registry, message: type[M], *, subject: Subject = None, schema_id: int | None = None
    ) -> None:
        self._inner = Protobuf(message)
        self._descriptor: Any = message.DESCRIPTOR  # type: ignore[attr-defined]
        super().__init__(registry, self._descriptor.full_name, subject, schema_id)
        self._indexes = indexes_written(_indexes_of(self._descriptor))

    def _schema(self) -> Schema:
        file = self._descriptor.file
        for imported in file.dependencies:
            if not imported.name.startswith("google/protobuf/"):
                raise ValueError(
                    f"{file.name} imports {imported.name}: register both, and give RegisteredProtobuf the "
                    "schema_id= of the first"
                )
        return Schema("PROTOBUF", base64.b64encode(file.serialized_pb).decode())

    def serialize(self, value: M) -> bytes:
        return self._framed(self._indexes + self._inner.serialize(value))

    def deserialize(self, data: bytes) -> M:
        _, begin = unframed(data)
        return self._inner.deserialize(data[indexes_end(data, begin) :])


def unframed(data: bytes) -> tuple[int, int]:
    """Return the schema's id, and the position of the data. Raises ValueError if there is no id."""
    if len(data) < _FRAME.size or data[0] != MAGIC:
        raise ValueError(
            f"{len(data)} bytes do not begin with a schema's id (0, then four bytes): were they written "
            "without a registry?"
        )
    return int(_FRAME.unpack_from(data)[1]), _FRAME.size


def indexes_end(data: bytes, begin: int) -> int:
    """Return the position of the message after its indexes. Raises ValueError for invalid indexes."""
    try:
        raw, begin = read_zigzag(data, begin)
        count = raw >> 1
        if raw & 1 or count > DEPTH_MAX:
            raise ValueError(f"no Protobuf behind the schema's id: {count} message indexes")
        for _ in range(count):
            _, begin = read_zigzag(data, begin)
    except (IndexError, CorruptRecordBatch):
        raise ValueError(f"no Protobuf behind the schema's id: {len(data)} bytes end too early") from None
    return begin


def indexes_written(indexes: Sequence[int]) -> bytes:
    """Return the bytes of message indexes."""
    if list(indexes) == [0]:
        return varint(0)
    return b"".join(map(varint, (len(indexes), *indexes)))


def _indexes_of(descriptor: Any) -> list[int]:
    """Return the indexes of a message in its file, outermost first."""
    indexes: list[int] = []
    while descriptor is not None:
        above = descriptor.containing_type
        level = descriptor.file.message_types_by_name.values() if above is None else above.nested_types
        indexes.insert(0, [each.full_name for each in level].index(descriptor.full_name))
        descriptor = above
    return indexes


def _avro_name(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return str(schema)
    name, space = str(schema.get("name", schema.get("type"))), schema.get("namespace")
    return f"{space}.{name}" if space and "." not in name else name
