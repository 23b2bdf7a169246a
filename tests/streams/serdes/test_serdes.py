"""Serdes: bytes as Kafka's own write them, and back."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.serdes import (
    Avro,
    Boolean,
    Bytes,
    Double,
    Float,
    Integer,
    Json,
    ListOf,
    Long,
    MessagePack,
    Protobuf,
    PydanticJson,
    Serde,
    SessionWindowed,
    Short,
    String,
    TimeWindowed,
    Uuid,
    Window,
    Windowed,
    serde_for,
)
from streams.state import StoreSpec


class Point(msgspec.Struct):
    x: int
    y: int = 0


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (String(), "grün", "grün".encode()),
        (Bytes(), b"\x00\xff", b"\x00\xff"),
        (Long(), -2, b"\xff" * 7 + b"\xfe"),
        (Integer(), 258, b"\x00\x00\x01\x02"),
        (Double(), 1.5, struct.pack(">d", 1.5)),
        (Boolean(), True, b"\x01"),
        (Uuid(), UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
        (Json(), {"a": [1, None]}, b'{"a":[1,null]}'),
        (Json(Point), Point(1, 2), b'{"x":1,"y":2}'),
        (MessagePack(Point), Point(1, 2), b"\x82\xa1x\x01\xa1y\x02"),
        (TimeWindowed(String(), 10), Windowed("k", Window(20, 30)), b"k" + struct.pack(">q", 20)),
        (
            TimeWindowed(String(), 2**63 - 1),
            Windowed("k", Window(20, 2**63 - 1)),
            b"k" + struct.pack(">q", 20),
        ),
        (SessionWindowed(String()), Windowed("k", Window(20, 35)), b"k" + struct.pack(">qq", 35, 20)),
    ],
)
def test_bytes(serde: Serde[Any], value: Any, data: bytes) -> None:
    assert serde.serialize(value) == data
    assert serde.deserialize(data) == value
    assert serde.deserialize_many([data, None, data]) == [value, None, value]


@pytest.mark.parametrize(
    ("serde", "data"),
    [
        (String(), b"\xff"),
        (Long(), b"1"),
        (Integer(), b"12345"),
        (Double(), b""),
        (Boolean(), b"\x02"),
        (Json(), b"{"),
        (Json(Point), b'{"x":"one"}'),
        (TimeWindowed(String(), 10), b"short"),
        (SessionWindowed(String()), b"twelve bytes"),
    ],
)
def test_bytes_that_are_none_raise_value_error(serde: Serde[Any], data: bytes) -> None:
    with pytest.raises(ValueError):
        serde.deserialize(data)


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_round_trip(value: int) -> None:
    assert Long().deserialize(Long().serialize(value)) == value


def test_types_stand_for_serdes() -> None:
    assert isinstance(serde_for(str), String)
    assert isinstance(serde_for(int), Long)
    assert isinstance(serde_for(bytes), Bytes)
    assert serde_for(Point).deserialize(b'{"x":3}') == Point(3)  # type: ignore[union-attr]
    assert serde_for(list[int]).deserialize(b"[1]") == [1]  # type: ignore[union-attr]
    assert serde_for(None) is None
    own = String()
    assert serde_for(own) is own


@pytest.mark.parametrize(
    ("inner", "values", "data"),
    [
        (Long(), [1, None, -2], "000000000100000001000000030000000000000001fffffffffffffffe"),
        (String(), ["a", None, ""], "01000000030000000161ffffffff00000000"),
        (Uuid(), [UUID(int=1)], "000000000000000001" + str(UUID(int=1)).encode().hex()),
        (Short(), [], "000000000000000000"),
        (Float(), [1.5], "0000000000000000013fc00000"),
        (Boolean(), [True], "01000000010000000101"),
    ],
)
def test_lists_are_kafkas(inner: Any, values: list[Any], data: str) -> None:
    """Lists have the bytes of Kafka's ListSerializer."""
    serde: ListOf[Any] = ListOf(inner)
    assert serde.serialize(values).hex() == data
    assert serde.deserialize(bytes.fromhex(data)) == values


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x02", bytes.fromhex("0100000001000000ff61")])
def test_what_is_no_list(data: bytes) -> None:
    with pytest.raises(ValueError, match="a list of String"):
        ListOf(String()).deserialize(data)


@pytest.mark.parametrize(("serde", "wrong"), [(Short(), 40_000), (Short(), "x"), (Float(), "x")])
def test_numbers_that_do_not_fit(serde: Any, wrong: Any) -> None:
    with pytest.raises(ValueError):
        serde.serialize(wrong)
    with pytest.raises(ValueError, match="bytes, got 3"):
        serde.deserialize(b"abc")


def test_avro_of_a_schema() -> None:
    fields = [{"name": "item", "type": "string"}, {"name": "pieces", "type": "int"}]
    schema = {"type": "record", "name": "Order", "fields": fields}
    serde = Avro(schema)
    data = serde.serialize({"item": "nut", "pieces": 3})
    assert data == b"\x06nut\x06"
    assert serde.deserialize(data) == {"item": "nut", "pieces": 3}
    later = {**schema, "fields": [*fields, {"name": "country", "type": "string", "default": "de"}]}
    assert Avro(schema, later).deserialize(data)["country"] == "de"
    assert Avro('"string"').serialize("x") == b"\x02x"
    for wrong in ({"item": 1}, {"pieces": 3}, 7):
        with pytest.raises((ValueError, TypeError)):
            serde.serialize(wrong)
    for bad in (b"\x06n", data + b"x", b""):
        with pytest.raises(ValueError, match="Avro of the schema"):
            serde.deserialize(bad)
    with pytest.raises(ValueError, match="not an Avro schema"):
        Avro({"type": "record"})


def test_protobuf_of_a_generated_class() -> None:
    from google.protobuf.timestamp_pb2 import Timestamp

    serde: Any = serde_for(Timestamp)
    assert isinstance(serde, Protobuf) and repr(serde) == "Protobuf(Timestamp)"
    data = serde.serialize(Timestamp(seconds=5))
    assert data == b"\x08\x05" and serde.deserialize(data) == Timestamp(seconds=5)
    with pytest.raises(ValueError, match="3 bytes are no Timestamp"):
        serde.deserialize(b"bad")
    with pytest.raises(TypeError, match="expected Timestamp, got dict"):
        serde.serialize({})
    with pytest.raises(TypeError, match="a class that protoc has generated"):
        Protobuf(dict)  # type: ignore[type-var]


def test_json_of_pydantic_models() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed (the extra test)")

    class Order(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        item: str
        pieces: int = 1

    serde: Any = serde_for(Order)
    assert isinstance(serde, PydanticJson)
    data = serde.serialize(Order(item="nut"))
    assert data == b'{"item":"nut","pieces":1}' and serde.deserialize(data) == Order(item="nut")
    with pytest.raises(ValueError, match="pieces"):
        serde.deserialize(b'{"item": "nut", "pieces": "many"}')
    with pytest.raises(TypeError, match="expected Order, got dict"):
        serde.serialize({})


def test_types_serve_as_serdes_of_stores() -> None:
    spec = StoreSpec(name="s", kind="key_value", key_serde=str, value_serde=dict[str, int])
    assert isinstance(spec.key_serde, String) and repr(spec.value_serde) == "Json(dict)"
    assert replace(spec, value_serde=Long()).value_serde.serialize(1) == bytes(7) + b"\x01"
