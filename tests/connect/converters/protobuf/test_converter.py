"""ProtobufConverter with a schema registry, against the definitions that Confluent's ProtobufData makes."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import replace

import pytest

from connect.api import DataError, schema
from connect.api.schema import Schema, Type
from connect.converters import make_converter
from connect.converters.protobuf.indexes import write_indexes
from connect.converters.registry import framed
from tests.connect.converters.schema_registry import served
from tests.connect.converters.test_avro import ROW, VALUE

PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"
NAMESPACE = "io.confluent.connect.protobuf"
ROW_IN_PROTO = """\
syntax = "proto3";
package org.shop;

import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/type/date.proto";
import "google/protobuf/timestamp.proto";
import "google/type/timeofday.proto";

message Row {
  int32 id = 1;
  int32 small = 2 [(confluent.field_meta) = {
    params: [
      { key: "connect.type", value: "int8" }
    ]
  }];
  optional string name = 3;
  int64 count = 4;
  confluent.type.Decimal price = 5 [(confluent.field_meta) = {
    params: [
      { key: "scale", value: "2" }
    ]
  }];
  google.type.Date day = 6;
  google.protobuf.Timestamp at = 7;
  google.type.TimeOfDay time = 8;
}
"""


@pytest.fixture
def registry():
    with served() as registry:
        yield registry


def converter(registry, key="value.converter", **settings):
    config = {"schema.registry.url": registry.url, **{k.replace("_", "."): v for k, v in settings.items()}}
    return make_converter(key, PROTOBUF, config)


def read(registry, text, data, indexes=(0,), **settings):
    number = registry.add("x", text, "PROTOBUF")
    return converter(registry, **settings).to_connect("t", framed(number, write_indexes(indexes) + data))


def test_a_struct_both_ways(registry):
    protobuf = converter(registry, optional_for_nullables="true")
    data = protobuf.from_connect("t", ROW, VALUE)
    assert registry.schemas[0]["schema"] == ROW_IN_PROTO
    assert registry.subjects == {"t-value": [1]}
    assert data is not None and data[:6] == b"\x00\x00\x00\x00\x01\x00"
    of, value = protobuf.to_connect("t", data)
    assert value == VALUE
    assert of is not None and (of.name, list(of.fields)) == ("Row", list(ROW.fields))
    assert of.fields["small"] == Schema(type=Type.INT8, parameters={f"{NAMESPACE}.Tag": "2"})
    assert of.fields["price"].parameters == {"scale": "2", f"{NAMESPACE}.Tag": "5"}
    assert of.fields["name"].optional and not of.fields["id"].optional


def test_a_registry_is_asked_once_per_schema(registry):
    protobuf = converter(registry)
    datas = protobuf.from_connect_many("t", ROW, [VALUE] * 10)
    reading = converter(registry, enhanced_protobuf_schema_support="true")
    values = reading.to_connect_many("t", datas)
    assert [value for _, value in values] == [{**VALUE, "name": ""}] * 10
    assert {of.name for of, _ in values} == {"org.shop.Row"}
    assert registry.requests == [("POST", "/subjects/t-value/versions"), ("GET", "/schemas/ids/1")]


@pytest.mark.parametrize(
    ("of", "value", "message"),
    [
        (schema.float64(), 1.5, b"\x00\x09\x00\x00\x00\x00\x00\x00\xf8\x3f"),
        (schema.float32(), 1.5, b"\x02\x02\x0d\x00\x00\xc0\x3f"),
        (schema.int64(), 5, b"\x02\x04\x08\x05"),
        (schema.int32(), 5, b"\x02\x08\x08\x05"),
        (schema.boolean(), True, b"\x02\x0c\x08\x01"),
        (schema.string(), "é", b"\x02\x0e\x0a\x02\xc3\xa9"),
        (schema.bytes_(), b"\x00", b"\x02\x10\x0a\x01\x00"),
    ],
    ids=str,
)
def test_values_that_are_no_structs_are_wrappers(registry, of, value, message):
    data = converter(registry, key="key.converter").from_connect("t", of, value)
    # The message indexes name the wrapper in google/protobuf/wrappers.proto.
    assert data == b"\x00\x00\x00\x00\x01" + message
    assert registry.subjects == {"t-key": [1]}
    assert registry.schemas[0]["schema"].startswith('syntax = "proto3";\npackage google.protobuf;\n')
    assert converter(registry).to_connect("t", data) == (of, value)
    raw = converter(registry, wrapper_for_raw_primitives="false").to_connect("t", data)
    assert raw.value == {"value": value}


def test_maps_lists_and_structs_within_structs(registry):
    inner = schema.struct({"x": schema.int32()}, name="Inner")
    of = schema.struct(
        {
            "counts": schema.map_(schema.string(), schema.int64()),
            "inners": replace(schema.map_(schema.int32(), inner), name="my_map"),
            "rows": schema.array(inner),
            "Inner": inner,
        }
    )
    value = {"counts": {"a": 1}, "inners": {7: {"x": 2}}, "rows": [{"x": 3}, {"x": 4}], "Inner": {"x": 5}}
    protobuf = converter(registry)
    data = protobuf.from_connect("t", of, value)
    assert registry.schemas[0]["schema"] == (
        'syntax = "proto3";\n\n'
        "message ConnectDefault1 {\n"
        "  repeated ConnectDefault2Entry counts = 1;\n"
        "  repeated MyMapEntry inners = 2;\n"
        "  repeated Inner rows = 3;\n"
        "  InnerMessage Inner = 4;\n\n"
        "  message ConnectDefault2Entry {\n    string key = 1;\n    int64 value = 2;\n  }\n\n"
        "  message MyMapEntry {\n    int32 key = 1;\n    Inner value = 2;\n\n"
        "    message Inner {\n      int32 x = 1;\n    }\n  }\n\n"
        "  message Inner {\n    int32 x = 1;\n  }\n\n"
        "  message InnerMessage {\n    int32 x = 1;\n  }\n"
        "}\n"
    )
    result = protobuf.to_connect("t", data)
    assert result.value == value
    assert result.schema.fields["inners"].name == "my_map"
    assert protobuf.to_connect("t", protobuf.from_connect("t", *result)) == result


COLORS = """
syntax = "proto3";
package shop;
message Car {
  enum Color { RED = 0; BLUE = 5; }
  Color color = 3;
  oneof owner { string person = 4; Firm firm = 9; }
  optional int32 doors = 5;
  message Firm { sint32 number = 1; uint64 big = 2; fixed32 four = 3; }
}
"""


def test_enums_and_oneofs(registry):
    data = b"\x18\x05\x4a\x0d\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    result = read(registry, COLORS, data)
    firm = {"number": -1, "big": -1, "four": 0}
    assert result.value == {"owner_0": {"person": None, "firm": firm}, "color": "BLUE", "doors": None}
    fields = result.schema.fields
    assert fields["owner_0"].name == f"{NAMESPACE}.Union.owner"
    assert fields["owner_0"].fields["firm"].fields["big"].parameters == {
        f"{NAMESPACE}.Type": "uint64",
        f"{NAMESPACE}.Tag": "2",
    }
    assert fields["color"] == Schema(
        type=Type.STRING,
        name="Color",
        optional=True,
        parameters={
            f"{NAMESPACE}.Enum": "Color",
            f"{NAMESPACE}.Enum.RED": "0",
            f"{NAMESPACE}.Enum.BLUE": "5",
            f"{NAMESPACE}.Tag": "3",
        },
    )
    again = converter(registry)
    written = again.from_connect("t", *result)
    # The same bytes: numbers of fields, of the enum and types of whole numbers are kept.
    assert written is not None and written[6:] == data
    text = registry.schemas[-1]["schema"]
    assert "  oneof owner {\n    string person = 4;\n    Firm firm = 9;\n  }\n" in text
    assert "    RED = 0;\n    BLUE = 5;\n" in text and "sint32 number = 1;" in text
    # Without optional.for.nullables, a null number comes back as 0, as from Confluent's converter.
    assert again.to_connect("t", written).value == {**result.value, "doors": 0}


def test_enums_as_numbers_and_general_parameters(registry):
    number = read(registry, COLORS, b"\x18\x05", int_for_enums="true")
    assert number.value["color"] == 5 and number.schema.fields["color"].type is Type.INT32
    assert converter(registry).from_connect("t", *number)[6:] == b"\x18\x05"
    general = read(
        registry,
        COLORS,
        b"\x18\x05",
        generalized_sum_type_support="true",
        enhanced_protobuf_schema_support="true",
    )
    kinds = "org.apache.kafka.connect.data"
    assert general.schema.fields["color"].parameters[f"{kinds}.Enum.BLUE"] == "5"
    assert general.schema.fields["owner_0"].parameters == {f"{kinds}.Union": "owner"}
    assert general.schema.name == "shop.Car"
    assert read(registry, COLORS, b"\x18\x07").value["color"] == "UNKNOWN_ENUM_VALUE_Color_7"


def test_optional_fields_of_proto2_that_are_not_set(registry):
    text = (
        "message M { optional int32 a = 1; required string b = 2; optional int32 c = 3 [default = 7];"
        " repeated int32 d = 4 [packed = true]; }"
    )
    data = b"\x12\x01x\x22\x02\x01\x02"
    assert read(registry, text, data).value == {"a": None, "b": "x", "c": None, "d": [1, 2]}
    without = read(registry, text, data, optional_for_proto2="false")
    assert without.value == {"a": 0, "b": "x", "c": 7, "d": [1, 2]}


def test_messages_of_other_schemas_and_within_messages(registry):
    registry.add("other", 'syntax = "proto3"; package o; message Other { int32 n = 1; }', "PROTOBUF")
    text = """
        syntax = "proto3";
        import "o/other.proto";
        message First {}
        message Second { message Third { o.Other a = 1; map<string, o.Other> m = 2; } }
    """
    number = registry.add(
        "t-value", text, "PROTOBUF", [{"name": "o/other.proto", "subject": "other", "version": 1}]
    )
    data = framed(number, write_indexes([1, 0]) + b"\x0a\x02\x08\x05\x12\x07\x0a\x01k\x12\x02\x08\x06")
    assert converter(registry).to_connect("t", data).value == {"a": {"n": 5}, "m": {"k": {"n": 6}}}


def test_wrapper_messages_keep_nulls(registry):
    of = schema.struct({"a": schema.int32(optional=True), "b": schema.string(optional=True)})
    protobuf = converter(registry, wrapper_for_nullables="true")
    data = protobuf.from_connect("t", of, {"a": None, "b": ""})
    assert "google.protobuf.Int32Value a = 1;" in registry.schemas[0]["schema"]
    result = protobuf.to_connect("t", data)
    assert result.value == {"a": None, "b": ""}
    assert result.schema.fields["a"].optional


def test_the_latest_schema_of_a_subject(registry):
    text = 'syntax = "proto3"; message Other { int64 id = 9; map<string, int32> m = 2; }'
    registry.add("t-value", text, "PROTOBUF")
    latest = {"auto_register_schemas": "false", "use_latest_version": "true"}
    of = schema.struct({"id": schema.int32(), "m": schema.map_(schema.string(), schema.int32())}, name="L")
    value = {"id": 5, "m": {"a": 1}}
    data = converter(registry, **latest).from_connect("t", of, value)
    assert data == framed(1, b"\x00\x12\x05\x0a\x01a\x10\x01\x48\x05")
    assert converter(registry, use_schema_id="1").from_connect("t", of, value) == data
    more = schema.struct({**of.fields, "x": schema.int32()}, name="L")
    with pytest.raises(DataError, match="has no field x"):
        converter(registry, **latest).from_connect("t", more, {**value, "x": 1})
    lenient = converter(registry, **latest, latest_compatibility_strict="false")
    assert lenient.from_connect("t", more, {**value, "x": 1}) == data
    wrong = schema.struct({"id": schema.string()}, name="L")
    with pytest.raises(DataError, match=r"Other\.id of the Protobuf schema is of another type than string"):
        converter(registry, **latest).from_connect("t", wrong, {"id": "x"})


def test_names_that_are_none_in_protobuf(registry):
    of = schema.struct({"a b": schema.int32(), "1": schema.int32(), "ä": schema.int32()}, name="n.my-row")
    value = {"a b": 1, "1": 2, "ä": 3}
    with pytest.raises(DataError, match=r"'my-row' is no name in Protobuf.*scrub\.invalid\.names=true"):
        converter(registry).from_connect("t", of, value)
    scrubbing = converter(registry, scrub_invalid_names="true")
    data = scrubbing.from_connect("t", of, value)
    # The names are those of Java's URLEncoder, with _ for what is still no name.
    assert scrubbing.to_connect("t", data).value == {"a_b": 1, "x1": 2, "_C3_A4": 3}


@pytest.mark.parametrize(
    ("of", "value", "words"),
    [
        (schema.array(schema.int32()), [1], "put it into a struct"),
        (schema.struct({"a": schema.array(schema.array(schema.int32()))}), {"a": []}, "list of lists"),
        (schema.struct({"p": schema.decimal_(1)}), {"p": decimal.Decimal("1.25")}, "more than 1 digits"),
        (schema.struct({"a": schema.array(schema.int32(optional=True))}), {"a": [None]}, "has no nulls"),
        (schema.struct({"t": schema.timestamp()}), {"t": dt.datetime(2020, 1, 1)}, "does not fit"),
        (None, {"a": 1}, "dict without a schema"),
    ],
    ids=str,
)
def test_what_protobuf_cannot_express(registry, of, value, words):
    with pytest.raises(DataError, match=words):
        converter(registry).from_connect("t", of, value)


def test_nulls_are_null_records(registry):
    protobuf = converter(registry)
    assert protobuf.from_connect("t", None, None) is None
    assert protobuf.to_connect("t", None) == (None, None)
    assert registry.requests == []
