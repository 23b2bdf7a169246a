"""JsonConverter against Kafka's, on the same random schemas and values, both ways."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from connect.api import DataError, schema
from connect.api.schema import Schema, Type
from connect.converters import make_converter
from connect.errors import ConfigError
from tests.connect.converters.dumps import decoded, java, schema_dump, value_dump
from tests.support.java import needs_jar

JSON = "org.apache.kafka.connect.json.JsonConverter"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Generator:
    """Random schemas, and values of them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def schema(self, depth: int = 0) -> Schema:
        kinds: list[Any] = [
            *(schema.int8, schema.int16, schema.int32, schema.int64, schema.float32, schema.float64),
            *(schema.boolean, schema.string, schema.bytes_, schema.date, schema.time, schema.timestamp),
            lambda: schema.decimal_(self.chance.randint(0, 5)),
        ]
        if depth < 3:
            kinds += [self.array, self.map, self.struct, self.struct]
        make = self.chance.choice(kinds if depth else kinds[-4:])
        of = make(depth) if make in (self.array, self.map, self.struct) else make()
        return self.decorated(of) if depth else of

    def decorated(self, of: Schema) -> Schema:
        if self.chance.random() < 0.3:
            of = replace(of, optional=True)
        if self.chance.random() < 0.15:
            of = replace(of, doc="what it is", parameters={**of.parameters, "p": "q"})
        if self.chance.random() < 0.15 and of.name is None:
            of = replace(of, name="named", version=self.chance.randint(1, 9))
        if self.chance.random() < 0.2 and of.type not in (Type.STRUCT, Type.ARRAY, Type.MAP, Type.BYTES):
            of = replace(of, default=self.value(replace(of, optional=False)))
        return of

    def array(self, depth: int) -> Schema:
        return schema.array(self.schema(depth + 1))

    def map(self, depth: int) -> Schema:
        keys = self.chance.choice([schema.string(), schema.string(), schema.int32(), schema.boolean()])
        return schema.map_(keys, self.schema(depth + 1))

    def struct(self, depth: int) -> Schema:
        names = self.chance.sample(["a", "b c", "ü", "class", "f0", "x-y"], self.chance.randint(1, 6))
        return schema.struct({name: self.schema(depth + 1) for name in names})

    def value(self, of: Schema) -> Any:
        chance = self.chance
        if of.optional and chance.random() < 0.4:
            return None
        if of.default is not None and chance.random() < 0.3:
            return None
        match of.name or of.type:
            case schema.DECIMAL:
                return decimal.Decimal(chance.randint(-(10**12), 10**12)).scaleb(-int(of.parameters["scale"]))
            case schema.DATE:
                return dt.date(chance.randint(1600, 2100), 2, 28)
            case schema.TIME:
                return (EPOCH + dt.timedelta(milliseconds=chance.randrange(86_400_000))).time()
            case schema.TIMESTAMP:
                return EPOCH + dt.timedelta(milliseconds=chance.randint(-(10**13), 10**14))
        match of.type:
            case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
                limit = 1 << int(of.type.value[3:]) - 1
                return chance.choice([-limit, limit - 1, 0, chance.randrange(limit)])
            case Type.FLOAT32:
                return chance.choice([0.0, -1.5, 0.125, 3.0e5, 1024.25])
            case Type.FLOAT64:
                return chance.choice([0.1, -2.5, 1e300, 1e-300, chance.random()])
            case Type.BOOLEAN:
                return chance.random() < 0.5
            case Type.STRING:
                return chance.choice(["", "a", '"\\\n', "é😀", "007"])
            case Type.BYTES:
                return chance.randbytes(chance.randint(0, 5))
            case Type.ARRAY if of.values:
                return [self.value(of.values) for _ in range(chance.randint(0, 3))]
            case Type.MAP if of.keys and of.values:
                count = chance.randint(0, 1)  # Java does not keep the order of more
                return {self.value(of.keys): self.value(of.values) for _ in range(count)}
        return {name: self.value(field) for name, field in of.fields.items()}


def filled(of: Schema, value: Any) -> Any:
    """Return a value with its schema's defaults in place of nulls, as they are read."""
    if value is None:
        return of.default
    if of.type is Type.STRUCT:
        return {name: filled(field, value.get(name)) for name, field in of.fields.items()}
    if of.type is Type.ARRAY and of.values:
        return [filled(of.values, item) for item in value]
    if of.type is Type.MAP and of.values:
        return {key: filled(of.values, item) for key, item in value.items()}
    return value


@needs_jar("connect-json")
@pytest.mark.parametrize("settings", ["", "decimal.format=NUMERIC"])
def test_random_values_both_ways(settings):
    generator = Generator(2900 + len(settings))
    converter = make_converter("value.converter", JSON, dict(s.split("=") for s in settings.split(";") if s))
    values = []
    for of in (generator.schema() for _ in range(250)):
        values += [(of, generator.value(of)) for _ in range(3)]
    ours = [converter.from_connect("t", of, value) for of, value in values]
    for (of, value), data, theirs in zip(
        values, ours, java([(JSON, settings, data) for data in ours]), strict=True
    ):
        dump, _, written = theirs.partition("|")
        assert dump == f"{schema_dump(of)} {value_dump(of, filled(of, value))}", data
        assert converter.to_connect("t", data) == (of, filled(of, value))
        exactly = {"parse_float": decimal.Decimal, "parse_int": decimal.Decimal}
        assert json.loads(decoded(written) or b"", **exactly) == json.loads(data or b"", **exactly)
        assert converter.to_connect("t", decoded(written)) == (of, filled(of, value))


BARE = {"schemas.enable": "false"}


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", None),
        (b"null", None),
        (b"007", 7),
        (b"-007", -7),
        (b'{"a":00.50,"b":"007 \\" 008","c":[01e5]}', {"a": 0.5, "b": '007 " 008', "c": [1e5]}),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_bare_json_as_kafka_reads_it(data, value):
    """KAFKA-10477: an empty key is null. KAFKA-15012: numbers may begin with zeros."""
    assert make_converter("key.converter", "json", BARE).to_connect("t", data) == (None, value)


def test_zeros_in_an_envelope():
    data = b'{"schema":{"type":"int32"},"payload":007}'
    assert make_converter("value.converter", "json", {}).to_connect("t", data).value == 7


CONTENT = '{"type":"struct","fields":[{"field":"a","type":"int32","default":3}]}'


def test_the_schema_of_all_that_is_read():
    """KIP-1054: `schema.content` is used instead of an envelope. Written is the envelope still."""
    converter = make_converter("value.converter", "json", {"schema.content": CONTENT})
    assert converter.to_connect("t", b'{"a":1}').value == {"a": 1}
    assert converter.to_connect("t", b"{}").value == {"a": 3}
    assert converter.to_connect("t", None) == (None, None)
    assert (converter.to_connect("t", b"{}").schema or schema.int8()).fields["a"].default == 3
    assert converter.from_connect("t", schema.int8(), 1) is not None
    with pytest.raises(DataError, match="record of topic t"):
        converter.to_connect("t", b'{"a":"x"}')
    bare = make_converter("value.converter", "json", BARE | {"schema.content": CONTENT})
    assert bare.to_connect("t", b'{"a":"x"}') == (None, {"a": "x"})
    with pytest.raises(ConfigError, match=r"schema\.content=\{\}: is no schema"):
        make_converter("value.converter", "json", {"schema.content": "{}"})


@pytest.mark.parametrize("settings", [{}, {"replace.null.with.default": "false"}])
def test_nulls_and_defaults(settings):
    of = schema.struct({"a": schema.int32(default=3, optional=True), "b": schema.string(optional=True)})
    converter = make_converter("value.converter", "json", settings)
    data = converter.from_connect("t", of, {"a": None, "b": None})
    value = None if settings else 3
    assert json.loads(data or b"")["payload"] == {"a": value, "b": None}
    assert converter.to_connect("t", data) == (of, {"a": value, "b": None})
    no_fields = (data or b"").partition(b'"payload":')[0] + b'"payload":{}}'
    assert converter.to_connect("t", no_fields) == (of, {"a": value, "b": None})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_floats_without_a_json_number_are_written_as_kafka_does_and_come_back(value):
    converter = make_converter("value.converter", "json", {})
    of = schema.struct({"f": schema.float64(), "g": schema.int8()})
    data = converter.from_connect("t", of, {"f": value, "g": 1})
    back = converter.to_connect("t", data).value
    assert repr(back) == repr({"f": value, "g": 1})
    assert json.loads(data or b"")["payload"]["f"] in ("NaN", "Infinity", "-Infinity")


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        ('"int32","version":"1","name":5,"doc":[],"optional":"true"', "5", 5),
        ('"int32"', "5.0", 5),
        ('"int64"', "1e3", 1000),
        ('"map","keys":{"type":"string","optional":true},"values":{"type":"int8"}', '{"a":1}', {"a": 1}),
    ],
)
def test_schemas_and_values_as_kafka_reads_them(kind, payload, value):
    read = make_converter("value.converter", "json", {}).to_connect(
        "t", f'{{"schema":{{"type":{kind}}},"payload":{payload}}}'.encode()
    )
    assert read.value == value
    assert read.schema is not None and (read.schema.name, read.schema.version) == (None, None)
    assert not read.schema.optional


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ('"int32","parameters":{"a":1}', "5"),
        ('"int32"', "5.5"),
        ('"int32","name":"org.apache.kafka.connect.data.Time"', "-1"),
        ('"int32","name":"org.apache.kafka.connect.data.Time"', "86400000"),
        ('"map","keys":{"type":"string"},"values":{"type":"int8"}', '[["a",1]]'),
        ('"map","keys":{"type":"int32"},"values":{"type":"int8"}', '{"1":1}'),
    ],
)
def test_schemas_and_values_that_are_refused(kind, payload):
    with pytest.raises(DataError, match="topic t"):
        make_converter("value.converter", "json", {}).to_connect(
            "t", f'{{"schema":{{"type":{kind}}},"payload":{payload}}}'.encode()
        )


def test_a_numeric_decimal_keeps_all_its_digits():
    of = '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}'
    read = make_converter("value.converter", "json", {}).to_connect(
        "t", f'{{"schema":{of},"payload":1.567}}'.encode()
    )
    assert read.value == decimal.Decimal("1.567")
