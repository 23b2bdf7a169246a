"""Avro and Protobuf: with a schema's file, and by a registry."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ConfigError
from millstream.data_types.data_type import WrongData
from millstream.data_types.find import find_type
from millstream.data_types.names import TypeName
from millstream.data_types.registry import RegistryFailed
from millstream.data_types.schema_options import SchemaOptions
from millstream.terminal.status import NotFound, UsageError
from tests.support.registry import StandInRegistry, asked_registry

fastavro = pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "raw", "type": ["null", "bytes"], "default": None},
    ],
}
ORDER = {"id": 7, "note": "ä", "raw": b"\0\xff"}
SHOWN = {"id": 7, "note": "ä", "raw": "AP8="}


def avro(value: object = ORDER) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(SCHEMA), value)
    return stream.getvalue()


@pytest.fixture
def registry_server() -> Iterator[StandInRegistry]:
    answers = {
        "/schemas/ids/300": {"schema": json.dumps(SCHEMA)},
        "/schemas/ids/301": {"schema": json.dumps(SCHEMA)},
        "/schemas/ids/4": {"schemaType": "JSON"},
        "/subjects/orders-value/versions/latest": {"id": 300},
    }
    with asked_registry(answers) as server:
        yield server


@pytest.fixture
def registry(registry_server: StandInRegistry) -> str:
    return registry_server.address


def test_avro_of_a_schema_s_file(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(SCHEMA))
    kind = find_type(TypeName.AVRO, SchemaOptions(file=file))
    assert kind.decode(avro()) == SHOWN
    assert kind.text is not None and json.loads(kind.text(avro())) == SHOWN
    assert kind.parse is not None and kind.parse(b'{"id": 1, "note": null}') == avro({"id": 1, "note": None})
    for data in (b"", avro()[:-1], avro() + b"x"):
        with pytest.raises(WrongData, match="not avro of this schema"):
            kind.decode(data)
    for text in (b"{", b"{}", b'{"id": "x", "note": null}'):
        with pytest.raises(WrongData, match="avro"):
            kind.parse(text)


def test_avro_by_a_registry(registry: str) -> None:
    kind = find_type(TypeName.AVRO, SchemaOptions(registry=registry, schema_id=300))
    framed = b"\0\0\0\1\x2c" + avro()
    assert kind.decode(framed) == SHOWN
    plain = {"id": 1, "note": None}
    assert kind.encode(plain) == b"\0\0\0\1\x2c" + avro(plain)
    with pytest.raises(WrongData, match="no schema's number"):
        kind.decode(avro())
    with pytest.raises(RegistryFailed, match="/schemas/ids/5: 404"):
        kind.decode(b"\0\0\0\0\5")
    with pytest.raises(RegistryFailed, match="a schema of JSON, not of AVRO"):
        kind.decode(b"\0\0\0\0\4")


def test_avro_is_written_by_the_subject_s_newest_schema(registry: str) -> None:
    kind = find_type(TypeName.AVRO, SchemaOptions(registry=registry, subject="orders-value"))
    assert kind.encode(SHOWN) == b"\0\0\0\1\x2c" + avro()
    unknown = find_type(TypeName.AVRO, SchemaOptions(registry=registry, subject="a/b"))
    with pytest.raises(RegistryFailed, match=r"/subjects/a%2Fb/versions/latest: 404 .*[(]not found[)]"):
        unknown.encode(SHOWN)


def test_a_schema_s_file_is_registered(registry_server: StandInRegistry, tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(SCHEMA))
    kind = find_type(TypeName.AVRO, SchemaOptions(registry_server.address, file, subject="orders-value"))
    assert not registry_server.posted
    for _ in range(2):
        assert kind.encode(SHOWN) == b"\0\0\0\1\x2d" + avro()
    assert registry_server.posted == [("/subjects/orders-value/versions", SCHEMA)]
    refused = find_type(TypeName.AVRO, SchemaOptions(registry_server.address, file, subject="refused"))
    with pytest.raises(RegistryFailed, match="Schema being registered is bad"):
        refused.encode(SHOWN)


def test_a_password_is_sent_and_not_shown(registry_server: StandInRegistry) -> None:
    address = registry_server.address.replace("http://", "http://ann:s%40cret@")
    kind = find_type(TypeName.AVRO, SchemaOptions(address))
    assert kind.decode(b"\0\0\0\1\x2c" + avro()) == SHOWN
    assert registry_server.authorization == "Basic " + base64.b64encode(b"ann:s@cret").decode()
    with pytest.raises(RegistryFailed) as error:
        kind.decode(b"\0\0\0\0\5")
    assert "cret" not in str(error.value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("bytes", "AP8="),
        ({"type": "fixed", "name": "f", "size": 2}, "AP8="),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "-2.50"),
        ({"type": "int", "logicalType": "date"}, "2026-11-23"),
        ({"type": "int", "logicalType": "time-millis"}, "10:20:30.004000"),
        ({"type": "long", "logicalType": "time-micros"}, "10:20:30.000004"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "2026-11-23T10:20:30.004000Z"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "2026-11-23T10:20:30.000004Z"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "2026-11-23T10:20:30.004000"),
        ({"type": "string", "logicalType": "uuid"}, "9d1c9bb4-5a2c-4a0e-8f9e-0a2e8f3c1d11"),
        (["null", {"type": "int", "logicalType": "date"}, "string"], "2026-11-23"),
        (["null", {"type": "int", "logicalType": "date"}, "string"], "no date"),
        (["null", {"type": "int", "logicalType": "date"}, "string"], None),
        ({"type": "array", "items": "bytes"}, ["AP8=", ""]),
        ({"type": "map", "values": ["long", "bytes"]}, {"a": 1, "b": "AP8="}),
        (
            {
                "type": "record",
                "name": "node",
                "fields": [{"name": "id", "type": "bytes"}, {"name": "next", "type": ["null", "node"]}],
            },
            {"id": "AA==", "next": {"id": "AQ==", "next": None}},
        ),
    ],
    ids=lambda value: None,
)
def test_what_avro_shows_can_be_written(schema: object, value: object, tmp_path: Path) -> None:
    file = tmp_path / "s.avsc"
    file.write_text(json.dumps(schema))
    kind = find_type(TypeName.AVRO, SchemaOptions(file=file))
    assert kind.decode(kind.encode(value)) == value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "int", "logicalType": "date"}, "2026-13-01"),
        ("bytes", "not base64!"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1}, "1000.5"),
        (["null", "long"], "x"),
    ],
)
def test_what_is_not_of_the_avro_schema_is_said(schema: object, value: object, tmp_path: Path) -> None:
    file = tmp_path / "s.avsc"
    file.write_text(json.dumps(schema))
    with pytest.raises(WrongData, match="not of the avro schema"):
        find_type(TypeName.AVRO, SchemaOptions(file=file)).encode(value)


def test_a_file_that_is_no_avro_schema(tmp_path: Path) -> None:
    file = tmp_path / "s.avsc"
    file.write_text(json.dumps({"type": "recrod"}))
    with pytest.raises(ConfigError, match="not an Avro schema"):
        find_type(TypeName.AVRO, SchemaOptions(file=file))


def test_what_avro_lacks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--schema-registry, or a schema file"):
        find_type(TypeName.AVRO, SchemaOptions())
    with pytest.raises(UsageError, match="leave the schema file out"):
        find_type(TypeName.AVRO, SchemaOptions(file=tmp_path, registry="http://x"))
    with pytest.raises(ConfigError, match="cannot be read"):
        find_type(TypeName.AVRO, SchemaOptions(file=tmp_path / "none"))
    unreachable = find_type(TypeName.AVRO, SchemaOptions(registry="http://127.0.0.1:1"))
    with pytest.raises(RegistryFailed, match="is --schema-registry right"):
        unreachable.decode(b"\0\0\0\0\5")


def test_protobuf_of_a_set_of_descriptors(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2, duration_pb2

    descriptors = descriptor_pb2.FileDescriptorSet()
    duration_pb2.DESCRIPTOR.CopyToProto(descriptors.file.add())
    field = descriptors.file.add(
        name="o.proto", package="shop", syntax="proto3", dependency=[descriptors.file[0].name]
    )
    message = field.message_type.add(name="Order")
    message.field.add(name="order_id", number=1, type="TYPE_INT64", label="LABEL_OPTIONAL")
    message.field.add(
        name="took",
        number=2,
        type="TYPE_MESSAGE",
        label="LABEL_OPTIONAL",
        type_name=".google.protobuf.Duration",
    )
    file = tmp_path / "set"
    file.write_bytes(descriptors.SerializeToString())
    kind = find_type(TypeName.PROTOBUF, SchemaOptions(file=file, message="shop.Order"))
    assert kind.parse is not None and kind.text is not None
    data = kind.parse(b'{"order_id": 5, "took": "3s"}')
    assert data == b"\x08\x05\x12\x02\x08\x03"
    assert kind.decode(data) == {"order_id": "5", "took": "3s"}
    assert kind.encode(json.loads(kind.text(data))) == data
    with pytest.raises(WrongData, match=r"3 bytes are not a shop[.]Order"):
        kind.decode(b"\x08\xff\xff")
    with pytest.raises(WrongData, match=r"not a shop[.]Order in JSON"):
        kind.parse(b'{"x": 1}')
    with pytest.raises(NotFound, match=r"it has google[.]protobuf[.]Duration, shop[.]Order"):
        find_type(TypeName.PROTOBUF, SchemaOptions(file=file, message="Order"))
    with pytest.raises(UsageError, match="--value-message"):
        find_type(TypeName.PROTOBUF, SchemaOptions(file=file))
    file.write_bytes(b"x")
    with pytest.raises(ConfigError, match="not a set of descriptors"):
        find_type(TypeName.PROTOBUF, SchemaOptions(file=file, message="shop.Order"))


def proto_file(name: str, *imports: str, **message_types: dict[str, str]) -> Any:
    """Return a file of messages, each with its fields by name, of a scalar's or another message's type."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax="proto3", dependency=imports)
    for message_name, fields in message_types.items():
        message = file.message_type.add(name=message_name)
        for number, (field, kind) in enumerate(fields.items(), 1):
            if kind.startswith("."):
                message.field.add(
                    name=field, number=number, label="LABEL_OPTIONAL", type="TYPE_MESSAGE", type_name=kind
                )
            else:
                message.field.add(name=field, number=number, label="LABEL_OPTIONAL", type=kind)
    return file


def compiled(file: Any) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


@pytest.fixture
def protobuf_registry(registry_server: StandInRegistry) -> str:
    order = proto_file(
        "default",
        "customer.proto",
        "google/protobuf/timestamp.proto",
        Order={"id": "TYPE_INT32", "by": ".shop.Customer", "at": ".google.protobuf.Timestamp"},
        Return={"reason": "TYPE_STRING"},
    )
    order.message_type[1].nested_type.add(name="Item").field.add(
        name="sku", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL"
    )
    reference = {"name": "customer.proto", "subject": "customer", "version": 3}
    registry_server.answers |= {
        "/schemas/ids/7?format=serialized": {
            "schemaType": "PROTOBUF",
            "schema": compiled(order),
            "references": [reference],
        },
        "/subjects/customer/versions/3?format=serialized": {
            "schemaType": "PROTOBUF",
            "schema": compiled(proto_file("x", Customer={"name": "TYPE_STRING"})),
        },
        "/subjects/orders-value/versions/latest": {"id": 7},
        "/schemas/ids/8?format=serialized": {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3";'},
    }
    return registry_server.address


def test_protobuf_by_a_registry(protobuf_registry: str) -> None:
    order = {"id": 5, "by": {"name": "ann"}, "at": "2026-11-23T10:00:00Z"}
    schemas = SchemaOptions(protobuf_registry, subject="orders-value")
    kind = find_type(TypeName.PROTOBUF, schemas)
    data = kind.encode(order)
    assert data.startswith(b"\0\0\0\0\x07\0\x08\x05")  # the file's first message is a single 0
    assert kind.decode(data) == order
    item = find_type(TypeName.PROTOBUF, replace(schemas, message="shop.Return.Item"))
    data = item.encode({"sku": "x"})
    assert data == b"\0\0\0\0\x07" + b"\x04\x02\0" + b"\n\x01x"  # two indexes: 1, 0
    assert kind.decode(data) == {"sku": "x"}
    assert kind.decode(b"\0\0\0\0\x07" + b"\x02\x02" + b"\n\x01x") == {"reason": "x"}
    nobody = find_type(TypeName.PROTOBUF, replace(schemas, message="shop.Nobody"))
    with pytest.raises(
        NotFound, match=r"no message shop[.]Nobody in schema 7: it has shop[.]Order, shop[.]Return"
    ):
        nobody.encode({})


@pytest.mark.parametrize("behind", [b"", b"\x02", b"\x01", b"\x04\x02\x08", b"\x02\x01", b"\xff" * 12])
def test_what_is_no_registered_protobuf(protobuf_registry: str, behind: bytes) -> None:
    kind = find_type(TypeName.PROTOBUF, SchemaOptions(protobuf_registry))
    with pytest.raises(WrongData):
        kind.decode(b"\0\0\0\0\x07" + behind)


def test_what_a_protobuf_registry_lacks(protobuf_registry: str, tmp_path: Path) -> None:
    kind = find_type(TypeName.PROTOBUF, SchemaOptions(protobuf_registry))
    with pytest.raises(RegistryFailed, match="does not serve Protobuf compiled"):
        kind.decode(b"\0\0\0\0\x08\0")
    with pytest.raises(RegistryFailed, match="404"):
        kind.decode(b"\0\0\0\0\x09\0")
    with pytest.raises(UsageError, match="not both"):
        find_type(TypeName.PROTOBUF, SchemaOptions(protobuf_registry, tmp_path))
