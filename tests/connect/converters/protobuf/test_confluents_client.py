"""Wire bytes against Confluent's Python client, whose serializers write the format of its Java converters."""

from __future__ import annotations

import json
import uuid

import pytest
from google.protobuf import message_factory

from connect.api import schema
from connect.converters import make_converter
from connect.converters.protobuf.files import ProtobufFile, file_of
from tests.connect.converters.schema_registry import served
from tests.connect.converters.test_avro import ROW, VALUE

pytest.importorskip(
    "confluent_kafka.schema_registry.protobuf",
    reason="confluent-kafka[schemaregistry,protobuf] is not installed",
)

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

CONTEXT = SerializationContext("t", MessageField.VALUE)
CARS = """
syntax = "proto3";
package shop;
message First {}
message Outer { message Car { string name = 1; repeated sint64 ids = 2; map<string, double> prices = 3; } }
"""


@pytest.fixture
def registry():
    with served() as registry:
        yield registry


def client(registry):
    return SchemaRegistryClient({"url": registry.url})


def converter(registry, kind, **settings):
    return make_converter("value.converter", kind, {"schema.registry.url": registry.url, **settings})


def test_protobuf_both_ways(registry):
    # A name of its own: Confluent's client looks classes up by file.
    file = ProtobufFile(file_of(CARS, f"cars-{uuid.uuid4()}.proto"), {})
    cls = file.message([1, 0])
    car = cls(name="é", ids=[1, -2], prices={"x": 1.5})
    theirs = ProtobufSerializer(cls, client(registry), {"use.deprecated.format": False})(car, CONTEXT)
    ours = converter(registry, "protobuf")
    read = ours.to_connect("t", theirs)
    assert theirs[:8] == b"\x00\x00\x00\x00\x01\x04\x02\x00"
    assert read.value == {"name": "é", "ids": [1, -2], "prices": {"x": 1.5}}
    latest = {"use.latest.version": "true", "auto.register.schemas": "false"}
    of = schema.struct(
        {
            "name": schema.string(),
            "ids": schema.array(schema.int64()),
            "prices": schema.map_(schema.string(), schema.float64()),
        },
        name="shop.Outer.Car",
    )
    written = converter(registry, "protobuf", **latest).from_connect("t", of, read.value)
    assert written == theirs
    reader = ProtobufDeserializer(cls, {"use.deprecated.format": False}, client(registry))
    assert reader(written, CONTEXT) == car


def test_protobuf_of_ours_is_read_by_theirs(registry):
    data = converter(registry, "protobuf").from_connect("t", ROW, VALUE)
    text = registry.schemas[0]["schema"]
    cls = message_factory.GetMessageClass(ProtobufFile(file_of(text, "r.proto"), {}).message([0]).DESCRIPTOR)
    read = ProtobufDeserializer(cls, {"use.deprecated.format": False})(data, CONTEXT)
    assert (read.id, read.small, read.day.year, read.price.value) == (1, -5, 2013, b"\x00\x9c")


def test_avro_both_ways(registry):
    avro = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    theirs = AvroSerializer(client(registry), json.dumps(avro))({"n": 5}, CONTEXT)
    read = converter(registry, "avro").to_connect("t", theirs)
    assert read.value == {"n": 5}
    data = converter(registry, "avro").from_connect("t", ROW, VALUE)
    assert AvroDeserializer(client(registry))(data, CONTEXT)["name"] is None
    assert AvroDeserializer(client(registry))(data, CONTEXT)["price"] == VALUE["price"]


def test_json_schema_both_ways(registry):
    of = {"title": "R", "type": "object", "properties": {"n": {"type": "integer"}}}
    theirs = JSONSerializer(json.dumps(of), client(registry))({"n": 5}, CONTEXT)
    assert converter(registry, "json-schema").to_connect("t", theirs).value == {"n": 5}
    data = converter(registry, "json-schema").from_connect(
        "t", schema.struct({"n": schema.int32()}), {"n": 7}
    )
    assert JSONDeserializer(json.dumps(of))(data, CONTEXT) == {"n": 7}
