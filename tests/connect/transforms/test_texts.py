"""Texts as Java reads and writes them: dates, numbers, literals, field paths."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from connect.api import ConfigError
from connect.api import schema as s
from connect.api.schema import Schema, Type
from connect.transforms.date_format import DateFormat
from connect.transforms.field_path import FieldPath
from connect.transforms.java_numbers import as_float32, float_text, float_to_int, parse_float, parse_int
from connect.transforms.literals import parse_literal

MILLIS = 1_709_209_815_250  # Thursday, 29 February 2024, 12:30:15.250


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSS", "2024-02-29 12:30:15.250"),
        ("EEE, d MMM yy h:m a", "Thu, 29 Feb 24 12:30 PM"),
        ("EEEE MMMM D u", "Thursday February 60 4"),
        ("k K H", "12 0 12"),
        ("'it''s' ''y''", "it's '2024'"),
        ("X XX XXX Z z zzzz", "Z Z Z +0000 UTC Coordinated Universal Time"),
    ],
)
def test_dates_are_formatted(pattern: str, text: str) -> None:
    assert DateFormat(pattern).format(MILLIS) == text


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd", "2024-02-29", "2024-02-29"),
        ("yyyy-MM-dd", "2023-14-31x", "2024-03-02"),
        ("yyyyMMdd", "20240229", "2024-02-29"),
        ("d MMM yyyy", "29 fEbRuArY 2024", "2024-02-29"),
        ("dd/MM/yy", "01/02/43", "2043-02-01"),
        ("dd/MM/yy", "01/02/45", "1945-02-01"),
        ("D yyyy", "60 2024", "2024-02-29"),
        ("yyyy-MM-dd HH:mm X", "2024-03-01 01:00 +02", "2024-02-29"),
        ("yyyy-MM-dd HH:mm z", "2024-03-01 01:00 GMT+2:00", "2024-02-29"),
    ],
)
def test_dates_are_parsed(pattern: str, text: str, expected: str) -> None:
    millis = DateFormat(pattern, now=lambda: dt.datetime(2024, 6, 1)).parse(text)
    assert dt.datetime.fromtimestamp(millis // 1000, dt.UTC).date().isoformat() == expected


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("yyyy-MM", "2024/02"), ("MMM", "Foo"), ("X", "+"), ("HH:mm", "12"), ("yyyy", "9" * 30)],
)
def test_other_texts_are_no_dates(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match="does not match the pattern"):
        DateFormat(pattern).parse(text)


def test_a_format_writes_each_unit_anew() -> None:
    pattern = DateFormat("HH:mm")
    assert [pattern.format(m) for m in (-1, 0, 59_999, 60_000, 0)] == [
        "23:59",
        "00:00",
        "00:00",
        "00:01",
        "00:00",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00095, "9.5E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-123.25, "-123.25"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_floats_are_written_as_in_java(value: float, text: str) -> None:
    assert float_text(value) == text


def test_numbers_of_32_bits() -> None:
    assert float_text(as_float32(0.1), 32) == "0.1"
    assert float_text(as_float32(3.4028234e38), 32) == "3.4028235E38"
    assert as_float32(1e39) == float("inf")


@pytest.mark.parametrize(
    ("value", "bits", "expected"),
    [(300.7, 8, 44), (-1e10, 32, -(2**31)), (1e300, 64, 2**63 - 1), (float("nan"), 16, 0), (1e10, 8, -1)],
)
def test_floats_are_narrowed(value: float, bits: int, expected: int) -> None:
    assert float_to_int(value, bits) == expected


@pytest.mark.parametrize("text", ["", " 1", "1_0", "1.0", "128", "-129", "9" * 200])
def test_no_bytes(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no whole number|out of the range"):
        parse_int(text, 8)


@pytest.mark.parametrize("text", ["", "inf", "nan", "1_0", "1e", ".", "--1", "0x1"])
def test_no_floats(text: str) -> None:
    with pytest.raises(ValueError):
        parse_float(text)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("null", None, None),
        ("true", s.boolean(), True),
        ("12", s.int8(), 12),
        ("3000000000", s.int64(), 3_000_000_000),
        ("1.5", s.float32(), 1.5),
        ("1e300", s.float64(), 1e300),
        ("2024-02-29", s.date(), dt.date(2024, 2, 29)),
        ("12:30:15.250Z", s.time(), dt.time(12, 30, 15, 250_000)),
        ("[1, 300]", s.array(s.int16()), [1, 300]),
        ("[]", Schema(type=Type.ARRAY), []),
        ('{"a": 1}', s.map_(s.string(), s.int8()), {"a": 1}),
        ("{a: 1}", s.string(), "{a: 1}"),
        ("[1,", s.string(), "[1,"),
        ("text", s.string(), "text"),
        ("[" * 5000, s.string(), "[" * 5000),
    ],
)
def test_literals(text: str, schema: Schema | None, value: Any) -> None:
    assert parse_literal(text) == (schema, value)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("`a.b`.c", ["a.b", "c"]),
        ("a.`b.c`", ["a", "b.c"]),
        ("`a`b`", ["a`b"]),
        (r"`a\`.b`", ["a`.b"]),
        ("a`b", ["a`b"]),
        ("a.", ["a", ""]),
        ("", [""]),
        ("..", ["", "", ""]),
    ],
)
def test_paths(path: str, steps: list[str]) -> None:
    value: Any = "end"
    for step in reversed(steps):
        value = {step: value}
    assert FieldPath(path, "V2", "field").of_map(value) == "end"


@pytest.mark.parametrize("path", ["`a", "`a.b", r"`a\`"])
def test_a_backtick_without_partner(path: str) -> None:
    with pytest.raises(ConfigError, match="has no partner"):
        FieldPath(path, "V2", "field")
