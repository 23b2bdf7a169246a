"""Bytes and schemas that are made to hurt: each is a DataError of its record."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import DataError
from connect.converters.protobuf import ProtobufConverter
from connect.converters.protobuf.files import ProtobufFile, file_of
from connect.converters.protobuf.parser import parse_proto
from connect.converters.registry import RegisteredSchema, framed

TEXT = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import "confluent/type/decimal.proto";
message M {
  repeated int32 a = 1; map<string, N> m = 2; oneof o { string s = 3; bytes b = 4; } N n = 5;
  google.protobuf.Timestamp t = 6; google.type.Date d = 7; confluent.type.Decimal p = 8;
}
message N { M.E e = 1; double x = 2; }
message Deep { google.protobuf.Timestamp t = 1; }
""".replace("M.E e", "int64 e")


class OneSchema:
    """A registry with a single schema, without HTTP."""

    def __init__(self, text: str, kind: str = "PROTOBUF") -> None:
        self.schema = RegisteredSchema(1, kind, text, ())

    def by_id(self, schema_id: int) -> RegisteredSchema:
        if schema_id != 1:
            raise DataError(f"schema {schema_id} cannot be read")
        return self.schema


def converter(text: str, kind: str = "PROTOBUF") -> ProtobufConverter:
    registry = OneSchema(text, kind)
    return ProtobufConverter({"schema.registry.url": "http://x"}, is_key=False, registry=registry)  # type: ignore[arg-type]


CONVERTER = converter(TEXT)


@given(st.binary(max_size=200))
@settings(max_examples=500)
def test_random_bytes_are_a_value_or_a_data_error(data):
    try:
        of, value = CONVERTER.to_connect("t", framed(1, b"\x00" + data))
    except DataError:
        return
    assert of is not None
    of.check(value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "within its message indexes"),
        (b"\x02", "within its message indexes"),
        (b"\xfe\xff\xff\xff\x0f", "no message indexes"),
        (b"\x01", "no message indexes"),
        (b"\x02\xfe\xff\xff\xff\x0f", "no message at the indexes"),
        (b"\x02\x01", "no message at the indexes"),
        (b"\x80" * 11, "within its message indexes"),
        (b"\x42" + b"\x00" * 40, "no message indexes"),
        (b"\x00\x0a\xff\xff\xff\xff\x07", "is not Protobuf"),
        (b"\x00\x1a\x02\xff\xff", "is not Protobuf"),
        (b"\x00" + b"\x0b" * 1000, "is not Protobuf"),
        (b"\x00\x3a\x04\x08\x01\x10\x0d", "is not Protobuf"),
        (b"\x00\x42\x06\x18\x80\x80\x80\x80\x07", "is not Protobuf"),
        (b"\x00\x42\x06\x18\xff\xff\xff\xff\x07", "decimal of 0 bytes and scale 2147483647 is too large"),
        (b"\x00\x32\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10", "is not Protobuf"),
        (b"\x00\x32\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "is not Protobuf"),
    ],
    ids=repr,
)
def test_bytes_that_are_not_of_the_schema(data, words):
    with pytest.raises(DataError, match=words):
        CONVERTER.to_connect("t", framed(1, data))


def test_other_ids_and_kinds():
    with pytest.raises(DataError, match="schema 2 cannot be read"):
        CONVERTER.to_connect("t", framed(2, b"\x00"))
    with pytest.raises(DataError, match="one of AVRO, not of PROTOBUF"):
        converter("{}", "AVRO").to_connect("t", framed(1, b"\x00"))


def nested(depth: int) -> str:
    return "message A { " * depth + "}" * depth


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no message at the indexes"),
        ("{}", "line 1 of the .proto text"),
        ('syntax = "proto9";', "not supported"),
        ("message A {", "the end"),
        ("message A { int32 a = 1; int32 a = 2; }", "cannot be used"),
        ("message A { int32 a = 0; }", "cannot be used"),
        ("message A { int32 a = 99999999999; }", "no number of 32 bits"),
        ("message A { Missing a = 1; }", "cannot be used"),
        ('import "nowhere.proto"; message A {}', "none of its references"),
        ('import "../../etc/passwd"; message A {}', "none of its references"),
        ("message A { A a = 1; }", "contains itself"),
        ("message A { B b = 1; } message B { repeated A a = 1; }", "contains itself"),
        (nested(33), "nested deeper"),
        (nested(100_000), "nested deeper"),
        ("message A { map<A, int32> m = 1; }", "no type of a map's keys"),
        ('message A { int32 a = 1 [(confluent.field_meta) = { params: "x" }]; }', "not understood"),
        ("message A { repeated group G = 1 { } }", "is a group"),
        ("/*" * 100_000, "begins no token|is expected"),
        ('"' * 100_001, "is expected|begins no token"),
        ("x" * (5 << 20), "characters, more than"),
    ],
    ids=lambda text: text[:60],
)
def test_schemas_that_cannot_be_used(text, words):
    with pytest.raises(DataError, match=words):
        converter(text).to_connect("t", framed(1, b"\x00"))


def test_messages_whose_parts_multiply():
    messages = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(60))
    with pytest.raises(DataError, match="more than 20000 fields"):
        converter(messages + "message M60 { int32 a = 1; }").to_connect("t", framed(1, b"\x00"))


def test_a_schema_that_refers_to_itself():
    own = RegisteredSchema(1, "PROTOBUF", 'import "b.proto"; message A {}', ())
    with pytest.raises(DataError, match="imports itself"):
        a = file_of('import "b.proto";', "a.proto")
        ProtobufFile(a, {"b.proto": file_of('import "a.proto";', "b.proto"), "a.proto": a})
    assert own.id == 1


def test_a_descriptor_in_base64_is_read_as_clients_send_it():
    file = parse_proto("message A { optional int32 n = 1; }", "a.proto")
    text = base64.b64encode(file.SerializeToString()).decode()
    assert isinstance(file, descriptor_pb2.FileDescriptorProto)
    assert converter(text).to_connect("t", framed(1, b"\x00\x08\x05")).value == {"n": 5}


@given(st.text(alphabet="message{}A =1;int32[]<>map,/*\"'\n.", max_size=80))
def test_random_text_is_a_file_or_a_data_error(text):
    try:
        ProtobufFile(file_of(text, "x.proto"), {})
    except DataError:
        pass
