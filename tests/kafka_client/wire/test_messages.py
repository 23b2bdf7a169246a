"""Every declared message, at every version, against kio: generated from Kafka's own definitions.

Values are drawn for our class and mapped to kio's. Our bytes have to be kio's bytes, and kio's bytes
have to decode to the values. Which fields a version has, their tags and their types are compared on
the way: a value without a field on the other side fails the mapping.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import io
import pkgutil
import typing
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

import kafka_client.wire.messages
from kafka_client.wire import decode, encode
from kafka_client.wire.message import OUR_TAGS, Kind, Message
from kafka_client.wire.schema import Array, Field, Shape, fields_of
from tests.support import depth

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


NEWER = {"unregister_controller"}
"""Modules of messages that kio does not know yet: Kafka is asked them in the tools' transcripts."""


def top_level_messages() -> Iterator[type[Message]]:
    for info in pkgutil.iter_modules(kafka_client.wire.messages.__path__):
        if info.name in NEWER:
            continue
        module = importlib.import_module(f"kafka_client.wire.messages.{info.name}")
        for value in vars(module).values():
            # Structs inside messages inherit these; only top-level messages set them.
            if not isinstance(value, type) or not issubclass(value, Message) or value is Message:
                continue
            if "VERSIONS" in vars(value):
                yield value


CASES = [
    pytest.param(cls, version, id=f"{cls.__name__}-{version}")
    for cls in top_level_messages()
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1)
]


@cache
def kio_class(cls: type[Message], version: int) -> type[Any]:
    api = cls.__module__.rsplit(".", 1)[1]
    kind = "request" if cls.__name__.endswith("Request") else "response" if cls.API_KEY >= 0 else "data"
    theirs: type[Any] = getattr(importlib.import_module(f"kio.schema.{api}.v{version}.{kind}"), cls.__name__)
    return theirs


def pairs(cls: type[Message], kio: type[Any], version: int) -> list[tuple[Field, Any]]:
    """Our fields with kio's: times are named without their unit there. Ours alone are left out."""
    ours = {field.name: field for field in fields_of(cls, version) if (field.tag or 0) < OUR_TAGS}
    fields = []
    for theirs in dataclasses.fields(kio):
        field = ours.pop(theirs.name, None) or ours.pop(f"{theirs.name}_ms", None)
        assert field is not None, f"{cls.__name__} v{version} has no {theirs.name}"
        assert field.tag == theirs.metadata.get("tag")
        fields.append((field, theirs))
    assert not ours, f"{cls.__name__} v{version} has fields Kafka does not: {list(ours)}"
    return fields


@cache
def hints(kio: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kio)


def element_class(hint: Any) -> Any:
    """Return the kio class inside `tuple[X, ...] | None` or `X | None`."""
    while args := [arg for arg in typing.get_args(hint) if arg not in (type(None), Ellipsis)]:
        hint = args[0]
    return hint


INTEGERS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}


def values(shape: Shape, hint: Any, kafka_type: str | None, version: int) -> st.SearchStrategy[Any]:
    if isinstance(shape, Array):
        return st.lists(values(shape.element, hint, kafka_type, version), max_size=2)
    if not isinstance(shape, Kind):
        return messages(shape, element_class(hint), version)
    if kafka_type == "error_code":
        return st.sampled_from([int(code) for code in ErrorCode])
    if kafka_type == "datetime_i64":
        times = st.integers(0, 10**13)
        # kio cannot say "no time" where Kafka's definition has no default for it.
        return st.just(-1) | times if type(None) in typing.get_args(hint) else times
    if kafka_type == "timedelta_i64":
        # kio computes milliseconds in floats.
        return st.integers(-1, 10**12)
    if shape in INTEGERS:
        bits = INTEGERS[shape]
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    return {
        Kind.UINT16: st.integers(0, 0xFFFF),
        Kind.UINT32: st.integers(0, 0xFFFF_FFFF),
        Kind.BOOLEAN: st.booleans(),
        Kind.FLOAT64: st.floats(allow_nan=False),
        Kind.STRING: st.text(max_size=20) | st.just("é" * 70),
        Kind.UUID: st.binary(min_size=16, max_size=16) | st.just(bytes(16)),
        Kind.BYTES: st.binary(max_size=20) | st.just(b"x" * 200),
        Kind.RECORDS: st.binary(max_size=20) | st.just(b"x" * 20_000),
    }[shape]


@cache
def messages(cls: type[Message], kio: type[Any], version: int) -> st.SearchStrategy[Message]:
    arguments: dict[str, st.SearchStrategy[Any]] = {}
    for field, theirs in pairs(cls, kio, version):
        hint = hints(kio)[theirs.name]
        value = values(field.shape, hint, theirs.metadata.get("kafka_type"), version)
        if field.nullable:
            value = st.none() | value
        if field.tag is not None:
            value = st.builds(lambda default=field.plain_default: default) | value
        arguments[field.name] = value
    return st.builds(cls, **arguments)


def to_kio(message: Message, kio: type[Any], version: int) -> Any:
    arguments = {}
    for field, theirs in pairs(type(message), kio, version):
        convert = converter(hints(kio)[theirs.name], theirs.metadata.get("kafka_type"), version)
        value = getattr(message, field.name)
        arguments[theirs.name] = tuple(map(convert, value)) if isinstance(value, list) else convert(value)
    return kio(**arguments)


def converter(hint: Any, kafka_type: str | None, version: int) -> Callable[[Any], Any]:
    match kafka_type:
        case "error_code":
            return ErrorCode
        case "timedelta_i32" | "timedelta_i64":
            return lambda ms: datetime.timedelta(milliseconds=ms)
        case "datetime_i64":
            return lambda ms: None if ms == -1 else EPOCH + datetime.timedelta(milliseconds=ms)
        case "uuid":
            return lambda raw: UUID(bytes=raw) if raw != bytes(16) else None
        case None:
            return lambda value: None if value is None else to_kio(value, element_class(hint), version)
        case _:
            return lambda value: value


def kio_bytes(message: Message, version: int) -> bytes:
    kio = kio_class(type(message), version)
    out = io.BytesIO()
    entity_writer(kio)(out, to_kio(message, kio, version))
    return out.getvalue()


@depth.sample(200)
@pytest.mark.parametrize(("cls", "version"), CASES)
@settings(max_examples=depth.times(8), database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_bytes_are_kafkas(cls: type[Message], version: int, data: st.DataObject) -> None:
    message = data.draw(messages(cls, kio_class(cls, version), version))
    expected = kio_bytes(message, version)
    assert encode(message, version) == expected
    assert decode(cls, version, expected) == message


@pytest.mark.parametrize(("cls", "version"), CASES)
def test_defaults_are_kafkas(cls: type[Message], version: int) -> None:
    """Fields that the caller leaves out are sent as Kafka's defaults, where the definition has one."""
    message = cls()
    for field, theirs in pairs(cls, kio_class(cls, version), version):
        kafka_type = theirs.metadata.get("kafka_type")
        if theirs.default is not dataclasses.MISSING and kafka_type is not None:
            ours = getattr(message, field.name)
            convert = converter(None, kafka_type, version)
            default = tuple(ours) if isinstance(ours, list) else convert(ours)
            assert default == theirs.default, field.name
