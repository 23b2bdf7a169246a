"""Transforms of fields: examples in the sense of Kafka's unit tests, with and without schema."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from connect.api import ConfigError, DataError, SinkRecord, SourceRecord
from connect.api import schema as s
from connect.api.schema import Schema
from connect.transforms import transform_class

Apply = Callable[..., Any]
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=dt.UTC)
MILLIS = 1_709_209_815_250
POINT = s.struct({"x": s.int32(), "y": s.int32(optional=True), "z": s.int32().as_optional(7)}, name="point")


def with_schema(value: Any, schema: Schema) -> SourceRecord:
    return SourceRecord("t", value, value_schema=schema)


@pytest.mark.parametrize(
    ("name", "settings", "value", "expected"),
    [
        ("HoistField$Value", {"field": "f"}, 42, {"f": 42}),
        ("HoistField$Value", {"field": "f"}, None, {"f": None}),
        ("ExtractField$Value", {"field": "f"}, {"f": 42}, 42),
        ("ExtractField$Value", {"field": "f"}, {"g": 42}, None),
        ("ExtractField$Value", {"field": "f"}, None, None),
        ("ExtractField$Value", {"field": "a.b", "field_syntax_version": "V2"}, {"a": {"b": 1}}, 1),
        ("ExtractField$Value", {"field": "a.b", "field_syntax_version": "V1"}, {"a.b": 2}, 2),
        ("ExtractField$Value", {"field": "`a.b`.c", "field_syntax_version": "v2"}, {"a.b": {"c": 3}}, 3),
        ("ExtractField$Value", {"field": "a.b", "field_syntax_version": "V2"}, {"a": None}, None),
        ("Flatten$Value", {}, {"a": 1, "b": {"c": [1], "d": {"e": "x"}}}, {"a": 1, "b.c": [1], "b.d.e": "x"}),
        ("Flatten$Value", {"delimiter": "#"}, {"b": {"c": None}}, {"b#c": None}),
        ("Flatten$Value", {}, None, None),
        ("ReplaceField$Value", {"exclude": "a"}, {"a": 1, "b": 2}, {"b": 2}),
        ("ReplaceField$Value", {"include": "a,b", "exclude": "b"}, {"a": 1, "b": 2, "c": 3}, {"a": 1}),
        (
            "ReplaceField$Value",
            {"include": "a,b", "renames": "a:x"},
            {"a": 1, "b": 2, "c": 3},
            {"x": 1, "b": 2},
        ),
        (
            "MaskField$Value",
            {"fields": "a,b,c"},
            {"a": 5, "b": "x", "c": True},
            {"a": 0, "b": "", "c": False},
        ),
        (
            "MaskField$Value",
            {"fields": "a,b"},
            {"a": [1], "b": MOMENT, "c": 1},
            {"a": [], "b": dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "c": 1},
        ),
        ("MaskField$Value", {"fields": "a", "replacement": "12"}, {"a": 5}, {"a": 12}),
        ("MaskField$Value", {"fields": "a", "replacement": "12"}, {"a": "secret"}, {"a": "12"}),
        ("MaskField$Value", {"fields": "a", "replacement": "1.5"}, {"a": Decimal(2)}, {"a": Decimal("1.5")}),
        ("MaskField$Value", {"fields": "a"}, {}, {"a": None}),
        ("Cast$Value", {"spec": "int8"}, 300, 44),
        ("Cast$Value", {"spec": "int32"}, "-17", -17),
        ("Cast$Value", {"spec": "int8"}, -1e10, 0),
        ("Cast$Value", {"spec": "int64"}, 1e300, 2**63 - 1),
        ("Cast$Value", {"spec": "boolean"}, "TRUE", True),
        ("Cast$Value", {"spec": "boolean"}, "yes", False),
        ("Cast$Value", {"spec": "float32"}, "0.1", 0.10000000149011612),
        ("Cast$Value", {"spec": "string"}, 1e7, "1.0E7"),
        ("Cast$Value", {"spec": "string"}, True, "true"),
        ("Cast$Value", {"spec": "string"}, b"\x00\x01", "AAE="),
        ("Cast$Value", {"spec": "a:string,b:float64"}, {"a": 1, "c": 2}, {"a": "1", "c": 2, "b": None}),
        ("TimestampConverter$Value", {"target_type": "unix"}, MOMENT, MILLIS),
        (
            "TimestampConverter$Value",
            {"target_type": "unix", "unix_precision": "seconds"},
            MOMENT,
            MILLIS // 1000,
        ),
        ("TimestampConverter$Value", {"target_type": "Timestamp"}, MILLIS, MOMENT),
        ("TimestampConverter$Value", {"target_type": "Date"}, MILLIS, dt.date(2024, 2, 29)),
        ("TimestampConverter$Value", {"target_type": "Time"}, MILLIS, dt.time(12, 30, 15, 250_000)),
        (
            "TimestampConverter$Value",
            {"target_type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "field": "f"},
            {"f": MILLIS},
            {"f": "2024-02-29T12:30:15.250Z"},
        ),
        (
            "TimestampConverter$Value",
            {"target_type": "Timestamp", "format": "MMM d, yyyy h:mm a Z"},
            "Mar 1, 2024 1:30 AM +0100",
            dt.datetime(2024, 3, 1, 0, 30, tzinfo=dt.UTC),
        ),
        ("TimestampConverter$Value", {"target_type": "unix"}, None, None),
    ],
)
def test_values_without_schema(
    apply: Apply, name: str, settings: Mapping[str, str], value: Any, expected: Any
) -> None:
    result = apply(name, SourceRecord("t", value), **settings)
    assert result == SourceRecord("t", expected)
    as_key = apply(name.replace("Value", "Key"), SourceRecord("t", key=value), **settings)
    assert as_key == SourceRecord("t", key=expected)
    assert type(result.value) is type(expected)


@pytest.mark.parametrize(
    ("name", "settings", "record", "expected"),
    [
        (
            "HoistField$Value",
            {"field": "f"},
            with_schema(1, s.int8()),
            with_schema({"f": 1}, s.struct({"f": s.int8()})),
        ),
        (
            "ExtractField$Value",
            {"field": "z"},
            with_schema({"x": 1}, POINT),
            with_schema(7, POINT.fields["z"]),
        ),
        (
            "ExtractField$Value",
            {"field": "z", "replace_null_with_default": "false"},
            with_schema({"x": 1}, POINT),
            with_schema(None, POINT.fields["z"]),
        ),
        (
            "ExtractField$Value",
            {"field": "x"},
            with_schema(None, POINT),
            with_schema(None, POINT.fields["x"]),
        ),
        (
            "ExtractField$Value",
            {"field": "p.x", "field_syntax_version": "V2"},
            with_schema({"p": {"x": 3}}, s.struct({"p": POINT})),
            with_schema(3, s.int32()),
        ),
        (
            "Flatten$Value",
            {},
            with_schema({"p": {"x": 1}, "n": 2}, s.struct({"p": POINT, "n": s.int64()})),
            with_schema(
                {"p.x": 1, "p.y": None, "p.z": 7, "n": 2},
                s.struct(
                    {
                        "p.x": s.int32(),
                        "p.y": s.int32(optional=True),
                        "p.z": s.int32().as_optional(7),
                        "n": s.int64(),
                    }
                ),
            ),
        ),
        (
            "Flatten$Value",
            {},
            with_schema({"p": None}, s.struct({"p": s.struct({"x": s.int32()}, optional=True)})),
            with_schema({}, s.struct({"p.x": s.int32(optional=True)})),
        ),
        (
            "ReplaceField$Value",
            {"exclude": "y", "renames": "x:a"},
            with_schema({"x": 1, "y": 2}, POINT),
            with_schema({"a": 1, "z": 7}, s.struct({"a": s.int32(), "z": POINT.fields["z"]}, name="point")),
        ),
        (
            "MaskField$Value",
            {"fields": "x"},
            with_schema({"x": 1, "y": 2, "z": 3}, POINT),
            with_schema({"x": 0, "y": 2, "z": 3}, POINT),
        ),
        (
            "MaskField$Value",
            {"fields": "x", "replacement": "4294967299"},
            with_schema({"x": 1, "z": 3}, POINT),
            with_schema({"x": 3, "z": 3}, POINT),
        ),
        (
            "Cast$Value",
            {"spec": "string"},
            with_schema(MOMENT, s.timestamp()),
            with_schema("2024-02-29T12:30:15.250Z", s.string(name=s.TIMESTAMP, version=1)),
        ),
        (
            "Cast$Value",
            {"spec": "int64"},
            with_schema(dt.date(1970, 1, 3), s.date()),
            with_schema(2, s.int64(name=s.DATE, version=1)),
        ),
        (
            "Cast$Value",
            {"spec": "x:string,z:int8"},
            with_schema({"x": 1, "y": 2}, POINT),
            with_schema(
                {"x": "1", "y": 2, "z": 7},
                s.struct(
                    {"x": s.string(), "y": s.int32(optional=True), "z": s.int8().as_optional(7)}, name="point"
                ),
            ),
        ),
        (
            "TimestampConverter$Value",
            {"target_type": "Timestamp", "field": "x"},
            with_schema({"x": MILLIS}, s.struct({"x": s.int64(optional=True)})),
            with_schema({"x": MOMENT}, s.struct({"x": s.timestamp(optional=True)})),
        ),
        (
            "TimestampConverter$Value",
            {"target_type": "unix"},
            with_schema(None, s.timestamp(optional=True)),
            with_schema(None, s.int64(optional=True)),
        ),
        (
            "SetSchemaMetadata$Value",
            {"schema_name": "n", "schema_version": "3"},
            with_schema(1, s.int8(optional=True)),
            with_schema(1, s.int8(name="n", version=3, optional=True)),
        ),
        ("SetSchemaMetadata$Value", {"schema_name": "n"}, SourceRecord("t"), SourceRecord("t")),
        (
            "SetSchemaMetadata$Value",
            {"schema_version": "2"},
            with_schema({"x": 1}, s.struct({"x": s.int32(), "y": s.string().as_optional("d")})),
            with_schema(
                {"x": 1, "y": "d"}, s.struct({"x": s.int32(), "y": s.string().as_optional("d")}, version=2)
            ),
        ),
        (
            "ValueToKey",
            {"fields": "z,x"},
            with_schema({"x": 1}, POINT),
            SourceRecord(
                "t",
                {"x": 1},
                {"z": 7, "x": 1},
                value_schema=POINT,
                key_schema=s.struct({"z": POINT.fields["z"], "x": s.int32()}),
            ),
        ),
        (
            "ValueToKey",
            {"fields": "a.b", "field_syntax_version": "V2"},
            SourceRecord("t", {"a": {"b": 1}}),
            SourceRecord("t", {"a": {"b": 1}}, {"a.b": 1}),
        ),
    ],
)
def test_values_with_schema(
    apply: Apply, name: str, settings: Mapping[str, str], record: SourceRecord, expected: SourceRecord
) -> None:
    assert apply(name, record, **settings) == expected


INSERT = {"topic_field": "t!", "partition_field": "p", "offset_field": "o?", "timestamp_field": "ts"}


def test_insert_field_without_schema(apply: Apply) -> None:
    record = SinkRecord("topic", 3, 9, {"a": 1}, timestamp=MILLIS)
    result = apply("InsertField$Value", record, **INSERT, static_field="s", static_value="c")
    assert result.value == {"a": 1, "t": "topic", "p": 3, "o": 9, "ts": MILLIS, "s": "c"}
    assert record.value == {"a": 1}
    assert apply("InsertField$Value", SinkRecord("topic", 3, 9), **INSERT).value is None


def test_insert_field_with_schema(apply: Apply) -> None:
    record = SinkRecord("topic", 3, 9, {"x": 1}, timestamp=MILLIS, value_schema=POINT)
    result = apply("InsertField$Value", record, **INSERT)
    assert result.value == {"x": 1, "z": 7, "t": "topic", "p": 3, "o": 9, "ts": MOMENT}
    added = {
        "t": s.string(),
        "p": s.int32(optional=True),
        "o": s.int64(optional=True),
        "ts": s.timestamp(optional=True),
    }
    assert result.value_schema == s.struct({**POINT.fields, **added}, name="point")


def test_insert_field_leaves_out_what_a_record_does_not_have(apply: Apply) -> None:
    settings = {"partition_field": "p", "timestamp_field": "ts"}
    assert apply("InsertField$Value", SourceRecord("t", {}), **settings).value == {}
    assert apply("InsertField$Value", SinkRecord("t", 0, 0, {}), **settings).value == {"p": 0}


@pytest.mark.parametrize(
    ("name", "settings", "record"),
    [
        ("InsertField$Value", {"offset_field": "o"}, SourceRecord("t", {})),
        ("InsertField$Value", {"topic_field": "x"}, with_schema({"x": 1}, POINT)),
        ("InsertField$Value", {"topic_field": "x"}, SourceRecord("t", "text")),
        ("ExtractField$Value", {"field": "unknown"}, with_schema({"x": 1}, POINT)),
        ("ExtractField$Value", {"field": "f"}, SourceRecord("t", 5)),
        ("ExtractField$Value", {"field": "a.b", "field_syntax_version": "V2"}, SourceRecord("t", {"a": 1})),
        ("HoistField$Value", {"field": "f"}, with_schema(None, s.int8())),
        ("Flatten$Value", {}, with_schema({"m": {}}, s.struct({"m": s.map_(s.string(), s.string())}))),
        ("Flatten$Value", {}, SourceRecord("t", {"d": MOMENT})),
        ("Flatten$Value", {}, SourceRecord("t", [])),
        ("ReplaceField$Value", {"renames": "x:y"}, with_schema({"x": 1}, POINT)),
        ("ReplaceField$Value", {"exclude": "x"}, SourceRecord("t", 1)),
        ("MaskField$Value", {"fields": "a"}, SourceRecord("t")),
        ("MaskField$Value", {"fields": "a"}, SourceRecord("t", {"a": b"x"})),
        ("MaskField$Value", {"fields": "a", "replacement": "x"}, SourceRecord("t", {"a": 1})),
        ("MaskField$Value", {"fields": "a", "replacement": "1"}, SourceRecord("t", {"a": True})),
        ("Cast$Value", {"spec": "int8"}, SourceRecord("t", "300")),
        ("Cast$Value", {"spec": "int8"}, SourceRecord("t", "1_0")),
        ("Cast$Value", {"spec": "int8"}, SourceRecord("t", b"1")),
        ("Cast$Value", {"spec": "int8"}, SourceRecord("t", MOMENT)),
        ("Cast$Value", {"spec": "string"}, SourceRecord("t", [1])),
        ("Cast$Value", {"spec": "string"}, SourceRecord("t", 1 << 63)),
        ("Cast$Value", {"spec": "float64"}, SourceRecord("t", "inf")),
        ("SetSchemaMetadata$Value", {"schema_name": "n"}, SourceRecord("t", 1)),
        ("TimestampConverter$Value", {"target_type": "unix"}, SourceRecord("t", "2024")),
        ("TimestampConverter$Value", {"target_type": "unix", "format": "yyyy"}, SourceRecord("t", "x")),
        ("TimestampConverter$Value", {"target_type": "Date"}, SourceRecord("t", True)),
        ("TimestampConverter$Value", {"target_type": "Date"}, SourceRecord("t", 1 << 62)),
        ("TimestampConverter$Value", {"target_type": "unix"}, with_schema(1, s.int32())),
        ("ValueToKey", {"fields": "unknown"}, with_schema({"x": 1}, POINT)),
        ("ValueToKey", {"fields": "a"}, SourceRecord("t")),
        ("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "move"}, SourceRecord("t")),
        (
            "HeaderFrom$Value",
            {"fields": "a", "headers": "h", "operation": "copy"},
            with_schema({"x": 1}, POINT),
        ),
    ],
)
def test_records_that_cannot_be_changed(
    apply: Apply, name: str, settings: Mapping[str, str], record: Any
) -> None:
    with pytest.raises(DataError):
        apply(name, record, **settings)


@pytest.mark.parametrize(
    ("name", "settings", "key"),
    [
        ("Cast$Value", {"spec": "int7"}, "spec"),
        ("Cast$Value", {"spec": "a:b:int8"}, "spec"),
        ("Cast$Value", {"spec": "bytes"}, "spec"),
        ("Cast$Value", {"spec": "int8,int16"}, "spec"),
        ("Cast$Value", {"spec": ""}, "spec"),
        ("ExtractField$Value", {}, "field"),
        ("ExtractField$Value", {"field": "`a.b", "field_syntax_version": "V2"}, "field"),
        ("ExtractField$Value", {"field": "a", "field_syntax_version": "V3"}, "field.syntax.version"),
        ("HeaderFrom$Value", {"fields": "a,b", "headers": "h", "operation": "move"}, "headers"),
        ("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "take"}, "operation"),
        ("InsertField$Value", {}, "topic.field"),
        ("InsertField$Value", {"static_field": "a"}, "static.value"),
        ("MaskField$Value", {"fields": "a,a"}, "fields"),
        ("MaskField$Value", {"fields": "a", "replacement": ""}, "replacement"),
        ("ReplaceField$Value", {"renames": "a"}, "renames"),
        ("ReplaceField$Value", {"exclude": "a,a"}, "exclude"),
        ("SetSchemaMetadata$Value", {}, "schema.name"),
        ("SetSchemaMetadata$Value", {"schema_version": "x"}, "schema.version"),
        ("TimestampConverter$Value", {"target_type": "string"}, "format"),
        ("TimestampConverter$Value", {"target_type": "string", "format": "YYYY"}, "format"),
        ("TimestampConverter$Value", {"target_type": "string", "format": "yyyy'"}, "format"),
        ("TimestampConverter$Value", {"target_type": "date-time"}, "target.type"),
        ("TimestampConverter$Value", {"target_type": "unix", "unix_precision": "days"}, "unix.precision"),
        ("ValueToKey", {"fields": "a,a"}, "fields"),
        ("RegexRouter", {"regex": "(", "replacement": "a"}, "regex"),
        ("RegexRouter", {"regex": "[a&&b]", "replacement": "a"}, "regex"),
        ("RegexRouter", {"regex": "a", "replacement": "$1"}, "replacement"),
        ("TimestampRouter", {"timestamp_format": "bb"}, "timestamp.format"),
        ("DropHeaders", {}, "headers"),
        ("InsertHeader", {"header": "h"}, "value.literal"),
    ],
)
def test_invalid_settings(name: str, settings: Mapping[str, str], key: str) -> None:
    transform = transform_class("type", name)()
    with pytest.raises(ConfigError) as raised:
        transform.configure({k.replace("_", "."): v for k, v in settings.items()})
    assert raised.value.key == key


def test_a_schema_is_changed_once_and_few_are_cached() -> None:
    transform: Any = transform_class("type", "HoistField$Value")()
    transform.configure({"field": "f"})
    schemas = [s.int8(version=i) for i in range(40)]
    first = transform.apply(with_schema(1, schemas[-1])).value_schema
    assert transform.apply(with_schema(2, schemas[-1])).value_schema is first
    for schema in schemas:
        assert transform.apply(with_schema(1, schema)).value_schema.fields["f"] is schema
    assert len(transform._plans) == 16
