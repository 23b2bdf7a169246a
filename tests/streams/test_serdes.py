"""Serdes: bytes as Kafka's own write them, and back."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.serdes import (
    Boolean,
    Bytes,
    Double,
    Integer,
    Json,
    Long,
    MessagePack,
    Serde,
    SessionWindowed,
    String,
    TimeWindowed,
    Uuid,
    Window,
    Windowed,
    serde_for,
)


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
