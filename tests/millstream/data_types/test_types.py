"""Keys and values by their types: bytes, text in lines, values in JSON."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.data_types.data_type import WrongData
from millstream.data_types.escapes import unescaped
from millstream.data_types.names import PLAIN_TYPES


@pytest.mark.parametrize(
    ("name", "data", "text", "value"),
    [
        ("string", b"\xc3\xa4", b"\xc3\xa4", "ä"),
        ("bytes", b"\0\xff", b"\0\xff", "AP8="),
        ("hex", b"\0\xff", b"00ff", "00ff"),
        ("base64", b"\0\xff", b"AP8=", "AP8="),
        ("short", b"\xff\xfe", b"-2", -2),
        ("int", b"\0\0\1\0", b"256", 256),
        ("long", b"\x80" + b"\0" * 7, b"-9223372036854775808", -(1 << 63)),
        ("float", b"\x3f\x80\0\0", b"1", 1.0),
        ("double", b"\x3f\xb9\x99\x99\x99\x99\x99\x9a", b"0.1", 0.1),
        ("json", b'{"a": [1]}', b'{"a": [1]}', {"a": [1]}),
    ],
)
def test_a_type_is_read_and_written_both_ways(name: str, data: bytes, text: bytes, value: object) -> None:
    kind = PLAIN_TYPES[name]
    assert (kind.text(data) if kind.text else data) == text
    assert (kind.parse(text) if kind.parse else text) == data
    assert kind.decode(data) == value
    assert kind.decode(kind.encode(value)) == value
    if name != "json":  # where blanks are no part of the value
        assert kind.encode(value) == data


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.floats(width=32), st.floats())
def test_no_number_loses_a_digit(whole: int, single: float, double: float) -> None:
    for name, number in (("long", whole), ("float", single), ("double", double)):
        kind = PLAIN_TYPES[name]
        assert kind.text is not None and kind.parse is not None
        data = kind.encode(number)
        again = kind.decode(kind.parse(kind.text(data)))
        assert again == number or math.isnan(again)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("int", b"abc", "3 bytes are not int, which has 4"),
        ("double", b"", "0 bytes are not double"),
        ("json", b"{", "'{' is not JSON"),
    ],
)
def test_bytes_of_another_type_are_told(name: str, data: bytes, message: str) -> None:
    kind = PLAIN_TYPES[name]
    for read in (kind.decode, kind.text):
        with pytest.raises(WrongData, match=message):
            assert read and read(data)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("int", b"x", "'x' is not a whole number"),
        ("int", b"2147483648", "2147483648 is not int: -2147483648 to 2147483647"),
        ("double", b"x", "not a number"),
        ("float", b"1e39", "too large for float"),
        ("hex", b"0", "not hex"),
        ("base64", b"*", "not base64"),
        ("json", b"{", "not JSON"),
    ],
)
def test_text_of_another_type_is_told(name: str, text: bytes, message: str) -> None:
    parse = PLAIN_TYPES[name].parse
    assert parse is not None
    with pytest.raises(WrongData, match=message):
        parse(text)


@pytest.mark.parametrize(("name", "value"), [("int", True), ("int", "1"), ("double", "1"), ("hex", 1)])
def test_a_value_of_another_type_is_told(name: str, value: object) -> None:
    with pytest.raises(WrongData):
        PLAIN_TYPES[name].encode(value)


def test_what_is_no_text_becomes_the_json_it_was_written_as() -> None:
    assert PLAIN_TYPES["string"].encode({"a": 1}) == b'{"a":1}'


def test_escapes() -> None:
    assert unescaped(r"a\n\t\0\x41\\n\q ä") == b"a\n\t\0A\\n\\q " + "ä".encode()
