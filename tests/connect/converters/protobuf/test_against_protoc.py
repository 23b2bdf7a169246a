"""Our parser of .proto text against protoc, in grpcio-tools."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.converters.protobuf.files import ProtobufFile, file_of

protoc = pytest.importorskip("grpc_tools.protoc", reason="protoc is in grpcio-tools, which is not installed")

PROTO2 = r"""
syntax = "proto2";
package a.b;
import "google/protobuf/timestamp.proto";
option java_package = "com.x"; option optimize_for = SPEED;
message M {
  required int32 a = 1; optional string s = 2 [default = "q\"\n\x41\303\244", deprecated = true];
  optional bytes raw = 3 [default = "\x00\377'"]; optional double d = 4 [default = -1.5e3];
  optional float inf = 5 [default = -inf]; optional bool yes = 6 [default = true];
  optional E e = 7 [default = B]; repeated int64 many = 8 [packed = true];
  optional uint64 hex = 9 [default = 0x1F];
  optional group Part = 10 { optional sint32 x = 1; }
  extensions 100 to 199; reserved 20, 300 to max; reserved "old";
  oneof choice { string one = 11; M two = 12; group Three = 13 { optional fixed64 y = 1; } }
  map<string, M> ms = 14; map<int32, E> es = 15 ;;
  message Inner { message Inmost { optional .a.b.E e = 1; optional Inner i = 2; } }
  optional Inner.Inmost deep = 16 [json_name = "tief"];
  optional google.protobuf.Timestamp at = 17;
  optional int32 octal = 18 [default = -017];
}
enum E { option allow_alias = true; A = 0; B = 1; C = 0x1 [deprecated = true]; D = -5; }
extend M { optional int32 more = 100; }
service S { option deprecated = true; rpc Call (M) returns (stream M) { option deprecated = true; } }
"""
PROTO3 = """
/* A comment; */ syntax = 'proto3'; // another
package x;
message message { string string = 1; optional int32 optional = 2; repeated bytes repeated = 3;
  map<bool, Map> map = 4; oneof oneof { int32 int32 = 5; } message Map { fixed32 package = 1; }
  optional string _x = 6; string import = 7; }
message Empty {}
"""
EDITION = """
edition = "2023";
option features.field_presence = IMPLICIT;
message A { int32 x = 1; string y = 2 [features.field_presence = EXPLICIT]; repeated int32 z = 3; }
"""


def compiled(text: str, folder: Path) -> descriptor_pb2.FileDescriptorProto:
    """Return what protoc makes of a text, without what our parser passes over."""
    (folder / "x.proto").write_text(text)
    out = folder / "x.bin"
    includes = str(files("grpc_tools") / "_proto")
    arguments = ["protoc", f"-I{folder}", f"-I{includes}", "--include_imports", f"--descriptor_set_out={out}"]
    assert protoc.main([*arguments, "x.proto"]) == 0, text
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.Add(file)
    return simple(pool.FindFileByName("x.proto"))


def simple(file) -> descriptor_pb2.FileDescriptorProto:
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    proto.ClearField("service")
    proto.ClearField("extension")
    for message in proto.message_type:
        clear_reserved(message)
    return proto


def clear_reserved(message: descriptor_pb2.DescriptorProto) -> None:
    for name in ("reserved_range", "reserved_name", "extension_range"):
        message.ClearField(name)
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        clear_reserved(nested)


def parsed(text: str) -> descriptor_pb2.FileDescriptorProto:
    proto = ProtobufFile(file_of(text, "x.proto"), {}).proto
    for message in proto.message_type:
        clear_reserved(message)
    return proto


@pytest.mark.parametrize("text", [PROTO2, PROTO3, EDITION], ids=["proto2", "proto3", "2023"])
def test_the_same_descriptors_as_protoc(text, tmp_path):
    assert parsed(text) == compiled(text, tmp_path)


NAMES = st.sampled_from(["a", "b_c", "message", "Foo", "x1", "int32", "map"])
SCALARS = st.sampled_from(["int32", "sint64", "fixed32", "double", "bool", "string", "bytes"])


@st.composite
def messages(draw, name="M", depth=0):
    """Draw the text of a message of proto3."""
    lines = []
    for number, field in enumerate(draw(st.lists(NAMES, unique=True, max_size=5)), 1):
        kind = draw(st.sampled_from(["", "optional ", "repeated ", "map", "oneof"]))
        scalar = draw(SCALARS)
        if kind == "map":
            lines.append(f"map<string, {scalar}> {field} = {number};")
        elif kind == "oneof":
            lines.append(f"oneof o_{field} {{ {scalar} {field} = {number}; }}")
        else:
            lines.append(f"{kind}{scalar} {field} = {number};")
    if depth < 2 and draw(st.booleans()):
        lines.append(draw(messages(name=f"N{depth}", depth=depth + 1)))
    return f"message {name} {{ {' '.join(lines)} }}"


@given(messages())
@settings(max_examples=30, deadline=None)
def test_random_messages_agree_with_protoc_and_after_printing(tmp_path_factory, body):
    text = f'syntax = "proto3"; package p; {body}'
    expected = compiled(text, tmp_path_factory.mktemp("proto"))
    assert parsed(text) == expected
