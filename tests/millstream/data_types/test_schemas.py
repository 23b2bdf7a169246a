"""Avro and Protobuf: with a schema's file, and by a registry."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from logd.errors import ConfigError
from millstream.data_types.data_type import WrongData
from millstream.data_types.find import SchemaOptions, find_type
from millstream.data_types.names import TypeName
from millstream.data_types.registry import RegistryFailed
from millstream.terminal.status import NotFound, UsageError

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
def registry() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {
                "/schemas/ids/300": {"schema": json.dumps(SCHEMA)},
                "/schemas/ids/4": {"schemaType": "JSON"},
            }
            body = json.dumps(found.get(self.path, {})).encode()
            self.send_response(200 if self.path in found else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


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
    with pytest.raises(RegistryFailed, match="a schema of JSON"):
        kind.decode(b"\0\0\0\0\4")


def test_what_avro_lacks(tmp_path: Path) -> None:
    for schemas in (SchemaOptions(), SchemaOptions(file=tmp_path, registry="http://x")):
        with pytest.raises(UsageError, match="--schema-registry, or a schema file"):
            find_type(TypeName.AVRO, schemas)
    with pytest.raises(ConfigError, match="cannot be read"):
        find_type(TypeName.AVRO, SchemaOptions(file=tmp_path / "none"))
    unreachable = find_type(TypeName.AVRO, SchemaOptions(registry="http://127.0.0.1:1"))
    with pytest.raises(RegistryFailed, match="is --schema-registry right"):
        unreachable.decode(b"\0\0\0\0\5")
    with pytest.raises(UsageError, match="--value-schema-id"):
        unreachable.encode({})


def test_protobuf_of_a_set_of_descriptors(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2, duration_pb2

    found = descriptor_pb2.FileDescriptorSet()
    duration_pb2.DESCRIPTOR.CopyToProto(found.file.add())
    field = found.file.add(name="o.proto", package="shop", syntax="proto3", dependency=[found.file[0].name])
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
    file.write_bytes(found.SerializeToString())
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
