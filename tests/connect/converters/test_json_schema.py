"""JsonSchemaConverter with a schema registry."""

from __future__ import annotations

import json

import pytest

from connect.api import DataError, schema
from connect.api.schema import Schema, Type
from connect.converters import make_converter
from connect.converters.registry import framed
from tests.connect.converters.schema_registry import served
from tests.connect.converters.test_json_against_kafka import Generator, filled

JSON = "io.confluent.connect.json.JsonSchemaConverter"


@pytest.fixture
def registry():
    with served() as registry:
        yield registry


def converter(registry, **settings):
    return make_converter("value.converter", JSON, {"schema.registry.url": registry.url, **settings})


ROW = schema.struct(
    {"id": schema.int32(), "name": schema.string(optional=True), "raw": schema.bytes_()},
    name="Row",
    version=2,
)


def test_a_struct_both_ways(registry):
    value = {"id": 1, "name": None, "raw": b"\x00"}
    data = converter(registry).from_connect("t", ROW, value)
    assert data == framed(1, b'{"id":1,"name":null,"raw":"AA=="}')
    assert registry.schemas[0]["schemaType"] == "JSON"
    assert json.loads(registry.schemas[0]["schema"]) == {
        "type": "object",
        "properties": {
            "id": {"connect.index": 0, "type": "integer", "connect.type": "int32"},
            "name": {"connect.index": 1, "oneOf": [{"type": "null"}, {"type": "string"}]},
            "raw": {"connect.index": 2, "type": "string", "connect.type": "bytes"},
        },
        "title": "Row",
        "connect.version": 2,
    }
    assert converter(registry).to_connect("t", data) == (ROW, value)


class JsonSchemaGenerator(Generator):
    """Random schemas whose maps have strings as keys."""

    def map(self, depth: int) -> Schema:
        return schema.map_(schema.string(), self.schema(depth + 1))


@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
def test_random_values_both_ways(registry, decimals):
    generator = JsonSchemaGenerator(29)
    both = converter(registry, **{"decimal.format": decimals})
    for _ in range(150):
        of = generator.schema()
        value = generator.value(of)
        assert both.to_connect("t", both.from_connect("t", of, value)) == (of, filled(of, value))


def test_a_schema_that_somebody_else_wrote(registry):
    written = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "title": "Order",
        "properties": {
            "id": {"type": "integer"},
            "note": {"type": ["null", "string"]},
            "price": {"type": "number"},
            "suit": {"enum": ["HEARTS", "SPADES"]},
            "item": {"$ref": "#/definitions/item"},
        },
        "required": ["id", "item"],
        "definitions": {"item": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }
    number = registry.add("t-value", written, "JSON")
    read = converter(registry).to_connect("t", framed(number, b'{"id":1,"item":{"n":2},"suit":"SPADES"}'))
    assert read.value == {"id": 1, "note": None, "price": None, "suit": "SPADES", "item": {"n": 2}}
    assert read.schema is not None
    kinds = {name: (of.type, of.optional) for name, of in read.schema.fields.items()}
    assert kinds == {
        "id": (Type.INT64, False),
        "note": (Type.STRING, True),
        "price": (Type.FLOAT64, True),
        "suit": (Type.STRING, True),
        "item": (Type.STRUCT, False),
    }


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"$ref": "#"}, "is recursive"),
        ({"$ref": "#/definitions/none"}, "does not have"),
        ({"$ref": "other.json"}, "outside it"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "one of 2 schemas"),
        ({"type": ["string", "integer"]}, "several types"),
        ({"type": "null"}, "type 'null'"),
        (True, "no JSON Schema"),
    ],
)
def test_schemas_that_connect_cannot_express(registry, written, words):
    number = registry.add("t-value", written, "JSON")
    with pytest.raises(DataError, match=words):
        converter(registry).to_connect("t", framed(number, b"1"))


def test_what_is_refused(registry):
    both = converter(registry)
    assert both.from_connect("t", None, None) is None
    assert both.to_connect("t", None) == (None, None)
    assert both.to_connect("t", both.from_connect("t", None, False)) == (
        schema.boolean(),
        False,
    )
    data = both.from_connect("t", ROW, {"id": 1, "name": "x", "raw": b""})
    with pytest.raises(DataError, match=r"not of JSON Schema \d+: value.id is str"):
        both.to_connect("t", data[:5] + b'{"id":"x","raw":""}')
    with pytest.raises(DataError, match="not of JSON Schema"):
        both.to_connect("t", data[:-1])
    with pytest.raises(DataError, match="keys are no strings"):
        both.from_connect("t", schema.map_(schema.int8(), schema.int8()), {1: 1})
    with pytest.raises(DataError, match="dict without a schema"):
        both.from_connect("t", None, {})
    avro = registry.add("avro", "int")
    with pytest.raises(DataError, match="is one of AVRO, not of JSON"):
        both.to_connect("t", framed(avro, b"1"))
