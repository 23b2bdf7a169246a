"""Texts of header values and what they mean, against Kafka's SimpleHeaderConverter."""

from __future__ import annotations

import datetime as dt
import decimal
import random

import pytest

from connect.api import DataError, schema
from connect.converters import make_header_converter
from connect.converters.values import parse_text
from tests.connect.converters.dumps import decoded, java, schema_dump, value_dump
from tests.support.java import needs_jar

SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
TEXTS = (
    r"""
[1,"a"]|[1,"a",2]|[]|[null]|[1,null]|{}|{null:1}|{"a":null}|{"a":1,"b":"x"}|{1:2,"b":3}|{1:[1],2:[300]}
[[1],[300]]|[1.5,2]|[1,2.5]|[1,99999999999999999999]|[true,1]|a,b|[a,b]|null|true | true|[ 1 , 2 ]| 1
1 |+1|-1|1e3|1E2|1.0|0.1|1e400|12345678901234567890|12345678901234567890.5|1e50|2019-01-01
2019-01-01T10:11:12.345Z|10:11:12.345Z|[2019-01-01]|["2019-01-01"]|{"k":10:11:12.345Z}|a\"b|"a"|["a\"b"]
{"a:b":1}|[""]|["a",]|[,]|[1|{a:1}|[1] x|[1]]|2019-13-45|\|1\:2|٣|1٣|[{"a":1},{"b":"x"}]|[{"a":1},[1]]
[1,[1]]|{"a":1,}|{"a":1 "b":2}|10\:11\:12.345Z|2019-01-01T10\:11\:12.345Z|3.|3.0|300.0|.5|-.5|--1|1d|1f
0x10|NaN|  |null |[null, null]|{"a":{"b":null}}|[true,false]|[1.5,1e300]|-0|-0.0|0.0|1.123456789012345678
00012|1,2|{"1":1,"2":2}|[[],[1]]|[[1],[]]|[{},{"a":1}]|[100,200,""]|127|128|32768|2147483648
9223372036854775807|9223372036854775808|-9223372036854775809|1.0E10|1e-400|1_000|+|-|[|]|{|}|:|,|"|""|["]
true}|[true}|{"a":true}|{"a":"b"|{"a"}|{1:}|[ "a b" , "c" ]|[" "]|["a, "]|["2019-01-01T10:11:12.345Z",1]
["2019-01-01",5]|[2019-01-01,2019-01-01T10:11:12.345Z]|[10:11:12.345Z,2.5]|1:2:3:4:5|12:34|1e99999999999
[0.1,1e300]|é|[é]|{"é":"ü"}
""".strip("\n")
    .replace("\n", "|")
    .split("|")
)


def ours(text: str) -> str:
    of, value = parse_text(text)
    return f"{schema_dump(of)} {value_dump(of, value)}"


def generated(count: int, seed: int) -> list[str]:
    texts = """1 -2 300 0.5 1e3 true null false abc 2019-01-01 10:11:12.345Z 2019-01-01T10:11:12.345Z "a" \\"
        99999999999 ["x" [1, ,"k": é . e5 + "b_c" """
    pieces = [*'[]{}:,"\\ ', *texts.replace("_", " ").split()]
    chance = random.Random(seed)
    return ["".join(chance.choices(pieces, k=chance.randint(1, 9))) for _ in range(count)]


@needs_jar("connect-api")
def test_texts_mean_what_they_mean_to_kafka():
    texts = [text for text in TEXTS + generated(4000, 29) if text]
    printed = java([(SIMPLE, "", text.encode()) for text in texts], "header")
    differing = {
        text: (ours(text), theirs.partition("|")[0])
        for text, theirs in zip(texts, printed, strict=True)
        if ours(text) != theirs.partition("|")[0]
    }
    assert not differing, len(differing)


@needs_jar("connect-api")
def test_values_have_the_texts_that_kafka_writes():
    texts = [text for text in TEXTS + generated(1500, 30) if text]
    printed = java([(SIMPLE, "", text.encode()) for text in texts], "header")
    simple = make_header_converter(SIMPLE, {})
    for text, theirs in zip(texts, printed, strict=True):
        read = simple.to_connect_header("t", "h", text.encode())
        written = simple.from_connect_header("t", "h", *read)
        if b"1970-01-01T" in (written or b""):
            continue  # Kafka writes only the time of it, and reads that as a time
        expected = decoded(theirs.partition("|")[2])
        # Java before 19 writes some floats with more digits than they need: 9.9999998E10.
        assert written == expected or ours(str(written, "utf-8")) == ours(str(expected, "utf-8")), text


@pytest.mark.parametrize(
    ("text", "of", "value"),
    [
        ("5", schema.int8(), 5),
        ("-129", schema.int16(), -129),
        ("2147483648", schema.int64(), 2**31),
        ("0.1", schema.float32(), 0.1),
        ("1.0E50", schema.float64(), 1e50),
        ("9223372036854775808", schema.decimal_(0), decimal.Decimal(2**63)),
        ("true", schema.boolean(), True),
        ("null", None, None),
        ("", schema.string(), ""),
        ("two words", schema.string(), "two words"),
        ('["a","b"]', schema.array(schema.string()), ["a", "b"]),
        ("[1,300]", schema.array(schema.int16()), [1, 300]),
        ('{"a":1.5}', schema.map_(schema.string(), schema.float32()), {"a": 1.5}),
        ("2019-01-31", schema.date(), dt.date(2019, 1, 31)),
        ("10:11:12.345Z", schema.time(), dt.time(10, 11, 12, 345_000)),
        ("2019-01-31T10:11:12.000Z", schema.timestamp(), dt.datetime(2019, 1, 31, 10, 11, 12, 0, dt.UTC)),
    ],
)
def test_a_text_and_back(text, of, value):
    simple = make_header_converter("simple", {})
    data = None if value is None else text.encode()
    assert simple.to_connect_header("t", "h", text.encode()) == (of, value)
    assert simple.from_connect_header("t", "h", of, value) == data


@pytest.mark.parametrize(
    ("of", "value", "text"),
    [
        (schema.bytes_(), b"\x00\xff", "AP8="),
        (None, [b"\x00", None, 'a"b\\'], r'["AA==",null,"a\"b\\"]'),
        (schema.float32(), 16777216.0, "1.6777216E7"),
        (schema.float32(), 0.10000000149011612, "0.1"),
        (None, 0.001, "0.001"),
        (None, 0.00012, "1.2E-4"),
        (None, 1234567.5, "1234567.5"),
        (None, 12345678.0, "1.2345678E7"),
        (None, -0.0, "-0.0"),
        (None, float("-inf"), "-Infinity"),
        (schema.struct({"a": schema.int8(), "b": schema.float32()}), {"a": 1, "b": 0.5}, '{"a":1,"b":0.5}'),
        (None, dt.datetime(2019, 1, 1, tzinfo=dt.UTC), "2019-01-01"),
        (None, dt.datetime(1969, 12, 31, 1, tzinfo=dt.UTC), "1969-12-31T01:00:00.000Z"),
        (None, dt.date(1950, 2, 3), "1950-02-03"),
    ],
)
def test_the_text_of_a_value(of, value, text):
    assert make_header_converter("simple", {}).from_connect_header("t", "h", of, value) == text.encode()


def test_a_value_of_no_type_is_refused():
    with pytest.raises(DataError, match="object is no type"):
        make_header_converter("simple", {}).from_connect_header("t", "h", None, [object()])


def test_a_text_of_many_brackets_is_a_string():
    assert parse_text("[" * 100_000) == (schema.string(), "[" * 100_000)
