"""Transforms of topics and headers, and the predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from connect.api import ConfigError, DataError, SinkRecord, SourceRecord
from connect.api import schema as s
from connect.transforms import TransformChain, predicate_class

Apply = Callable[..., Any]


@pytest.mark.parametrize(
    ("regex", "replacement", "topic", "expected"),
    [
        ("foo(.*)", "bar$1", "foo-1", "bar-1"),
        ("oo", "x", "foo", "foo"),
        ("to|topic", "x", "topic", "xpic"),
        ("(?<start>a)(b)?", "${start}$2-", "a", "a-"),
        (r"\Qa.b\E.*", r"\$1", "a.bc", "$1"),
        (r"\p{Alpha}+", "word", "topic", "word"),
        (r"[\p{Lower}-]+\z", "word", "my-topic", "word"),
        (r"\d+", "n", "\u0661", "\u0661"),
        ("(.)", "$12", "a", "a2"),
    ],
)
def test_regex_router(apply: Apply, regex: str, replacement: str, topic: str, expected: str) -> None:
    assert apply("RegexRouter", SourceRecord(topic), regex=regex, replacement=replacement).topic == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "t-20240229"),
        ({"timestamp_format": "yyyy-MM-dd'T'HH", "topic_format": "x_${timestamp}"}, "x_2024-02-29T12"),
        ({"topic_format": "${topic}.${topic}"}, "t.t"),
    ],
)
def test_timestamp_router(apply: Apply, settings: Mapping[str, str], expected: str) -> None:
    record = SinkRecord("t", 0, 0, timestamp=1_709_209_815_250)
    assert apply("TimestampRouter", record, **settings).topic == expected
    assert record.topic == "t"


def test_timestamp_router_needs_a_timestamp(apply: Apply) -> None:
    for record in (SourceRecord("t"), SinkRecord("t", 0, 0)):
        with pytest.raises(DataError, match="no timestamp"):
            apply("TimestampRouter", record)


HEADERS = [("a", None, 1), ("b", None, 2), ("a", None, 3)]


def test_drop_headers(apply: Apply) -> None:
    record = SourceRecord("t", headers=HEADERS)
    assert apply("DropHeaders", record, headers="a,c").headers == [("b", None, 2)]
    assert len(record.headers) == 3


def test_insert_header(apply: Apply) -> None:
    result = apply("InsertHeader", SourceRecord("t", headers=HEADERS), header="c", value_literal="300")
    assert result.headers == [*HEADERS, ("c", s.int16(), 300)]


@pytest.mark.parametrize(("operation", "rest"), [("move", {"y": 2}), ("copy", {"x": 1, "y": 2})])
def test_header_from(apply: Apply, operation: str, rest: Mapping[str, int]) -> None:
    settings = {"fields": "x,u", "headers": "hx,hu", "operation": operation}
    result = apply("HeaderFrom$Value", SourceRecord("t", {"x": 1, "y": 2}), **settings)
    assert result == SourceRecord("t", rest, headers=[("hx", None, 1), ("hu", None, None)])
    schema = s.struct({"x": s.int8(), "y": s.int8(), "u": s.int8().as_optional(5)})
    typed = SourceRecord("t", key={"x": 1, "y": 2}, key_schema=schema)
    result = apply("HeaderFrom$Key", typed, **settings)
    assert result.headers == [("hx", s.int8(), 1), ("hu", schema.fields["u"], 5)]
    assert result.key == rest
    assert list(result.key_schema.fields) == (["y"] if operation == "move" else ["x", "y", "u"])


def test_filter(apply: Apply) -> None:
    assert apply("Filter", SourceRecord("t")) is None


@pytest.mark.parametrize(
    ("name", "settings", "record", "expected"),
    [
        ("TopicNameMatches", {"pattern": "my-.*"}, SourceRecord("my-topic"), True),
        ("TopicNameMatches", {"pattern": "my"}, SourceRecord("my-topic"), False),
        ("HasHeaderKey", {"name": "a"}, SourceRecord("t", headers=HEADERS), True),
        ("HasHeaderKey", {"name": "c"}, SourceRecord("t", headers=HEADERS), False),
        ("RecordIsTombstone", {}, SourceRecord("t"), True),
        ("RecordIsTombstone", {}, SinkRecord("t", 0, 0, 0), False),
    ],
)
def test_predicates(name: str, settings: Mapping[str, str], record: Any, expected: bool) -> None:
    for prefix in ("", "org.apache.kafka.connect.transforms.predicates."):
        predicate = predicate_class("type", prefix + name)()
        predicate.configure(settings)
        assert predicate.test(record) is expected


@pytest.mark.parametrize(
    ("name", "settings", "key"),
    [
        ("TopicNameMatches", {"pattern": "("}, "pattern"),
        ("TopicNameMatches", {}, "pattern"),
        ("HasHeaderKey", {"name": ""}, "name"),
    ],
)
def test_invalid_predicates(name: str, settings: Mapping[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        predicate_class("type", name)().configure(settings)
    assert raised.value.key == key


def test_a_chain_leaves_its_input_as_it_is() -> None:
    """Transforms of ours change a record in place, so that the chain has to copy it in time."""
    chain = TransformChain.configured(
        {
            "transforms": "a,b,c,d",
            "transforms.a.type": "InsertField$Value",
            "transforms.a.static.field": "s",
            "transforms.a.static.value": "c",
            "transforms.a.predicate": "tombstone",
            "transforms.b.type": "RegexRouter",
            "transforms.b.regex": ".*",
            "transforms.b.replacement": "new",
            "transforms.c.type": "HeaderFrom$Value",
            "transforms.c.fields": "x",
            "transforms.c.headers": "x",
            "transforms.c.operation": "move",
            "transforms.d.type": "MaskField$Value",
            "transforms.d.fields": "y",
            "predicates": "tombstone",
            "predicates.tombstone.type": "RecordIsTombstone",
        }
    )
    record = SourceRecord("t", {"x": 1, "y": 2}, headers=HEADERS)
    assert chain.apply([record]) == [SourceRecord("new", {"y": 0}, headers=[*HEADERS, ("x", None, 1)])]
    assert record == SourceRecord("t", {"x": 1, "y": 2}, headers=HEADERS)
