"""Converters of single numbers and booleans, against the bytes that Kafka's own write."""

from __future__ import annotations

import math
import random

import pytest

from connect.api import DataError, schema
from connect.converters import make_converter, make_header_converter
from tests.connect.converters.dumps import decoded, java, schema_dump, value_dump
from tests.support.java import needs_jar

KAFKAS = "org.apache.kafka.connect.converters"


@pytest.mark.parametrize(
    ("name", "of", "value", "data"),
    [
        ("Short", schema.int16, -2, b"\xff\xfe"),
        ("Integer", schema.int32, 7, b"\x00\x00\x00\x07"),
        ("Long", schema.int64, -(2**63), b"\x80" + bytes(7)),
        ("Float", schema.float32, 1.5, b"\x3f\xc0\x00\x00"),
        ("Double", schema.float64, 2.5, b"\x40\x04" + bytes(6)),
        ("Double", schema.float64, math.inf, b"\x7f\xf0" + bytes(6)),
        ("Boolean", schema.boolean, True, b"\x01"),
        ("Boolean", schema.boolean, False, b"\x00"),
    ],
)
@pytest.mark.parametrize("style", ["{}.{}Converter", "short"])
def test_a_value_both_ways(style, name, of, value, data):
    named = name.lower() if style == "short" else style.format(KAFKAS, name)
    converter = make_converter("value.converter", named, {})
    assert converter.from_connect("t", None, value) == data
    assert converter.from_connect("t", of(), value) == data
    assert converter.to_connect("t", data) == (of(optional=True), value)
    assert converter.from_connect("t", None, None) is None
    assert converter.to_connect("t", None) == (of(optional=True), None)
    header = make_header_converter(named, {})
    assert header.to_connect_header("t", "h", data) == (of(optional=True), value)
    assert header.from_connect_header("t", "h", None, value) == data


@pytest.mark.parametrize("name", ["short", "integer", "long", "float", "double", "boolean"])
@pytest.mark.parametrize("value", ["x", [], b"", {}])
def test_a_value_of_another_type_is_refused(name, value):
    with pytest.raises(DataError, match="topic t is"):
        make_converter("key.converter", name, {}).from_connect("t", None, value)


@pytest.mark.parametrize(
    ("name", "value"), [("short", 2**15), ("integer", -(2**31) - 1), ("long", 2**63), ("float", 1e39)]
)
def test_a_number_out_of_range_is_refused(name, value):
    with pytest.raises(DataError, match="out of range"):
        make_converter("key.converter", name, {}).from_connect("t", None, value)


@pytest.mark.parametrize("name", ["short", "integer", "long", "float", "double", "boolean"])
def test_a_boolean_is_no_number_and_bytes_of_another_length_are_none(name):
    converter = make_converter("key.converter", name, {})
    if name != "boolean":
        with pytest.raises(DataError):
            converter.from_connect("t", None, True)
    for data in (b"", bytes(3), bytes(9)):
        with pytest.raises(DataError, match="record of topic t"):
            converter.to_connect("t", data)


def test_many_numbers_are_read_as_each_is():
    converter = make_converter("value.converter", "short", {})
    datas = [b"\x00\x01", None, b"\xff\xff"]
    assert converter.to_connect_many("t", datas) == [converter.to_connect("t", data) for data in datas]
    assert [v for _, v in converter.to_connect_many("t", [b"\x00\x01", b"\xff\xff"])] == [1, -1]
    with pytest.raises(DataError):
        converter.to_connect_many("t", [b"\x00", b"\x00\x01\x02"])  # as long as two numbers, together


def test_booleans_refuse_other_schemas_and_bytes():
    converter = make_converter("value.converter", "boolean", {})
    with pytest.raises(DataError, match="int32"):
        converter.from_connect("t", schema.int32(), None)
    with pytest.raises(DataError, match="0 or 1"):
        converter.to_connect("t", b"\x02")


@needs_jar("connect-runtime")
def test_bytes_mean_what_they_mean_to_kafka_and_are_written_the_same():
    chance = random.Random(29)
    names = ("Short", "Integer", "Long", "Float", "Double", "Boolean")
    datas = [chance.randbytes(size) for size in (0, 1, 2, 2, 3, 4, 4, 8, 8) for _ in range(20)]
    datas += [b"\x00", b"\x01", b"\x02", bytes(4), b"\xff" * 4, bytes(8), b"\xff" * 8]
    lines = [(f"{KAFKAS}.{name}Converter", "", data) for name in names for data in (*datas, None)]
    for (name, _, data), theirs in zip(lines, java(lines), strict=True):
        converter = make_converter("value.converter", name, {})
        dump, _, written = theirs.partition("|")
        if dump.startswith("error"):
            with pytest.raises(DataError):
                converter.to_connect("t", data)
            continue
        of, value = converter.to_connect("t", data)
        if isinstance(value, float) and math.isnan(value):
            continue  # of NaNs there are many, and Java keeps another
        assert f"{schema_dump(of)} {value_dump(of, value)}" == dump
        assert converter.from_connect("t", of, value) == decoded(written) == data
