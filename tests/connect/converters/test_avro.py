"""AvroConverter with a schema registry, against the schemas that Confluent's AvroData makes."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
from dataclasses import replace

import fastavro
import pytest

from connect.api import DataError, schema
from connect.api.schema import Schema, Type
from connect.converters import make_converter
from connect.converters.registry import RegistryClient, RegistryConfig, framed
from connect.errors import ConfigError, ConnectError, RetriableError
from tests.connect.converters.schema_registry import served
from tests.connect.converters.test_json_against_kafka import Generator, filled

AVRO = "io.confluent.connect.avro.AvroConverter"


@pytest.fixture
def registry():
    with served() as registry:
        yield registry


def converter(registry, key="value.converter", **settings):
    config = {"schema.registry.url": registry.url, **{k.replace("_", "."): v for k, v in settings.items()}}
    return make_converter(key, AVRO, config)


ROW = schema.struct(
    {
        "id": schema.int32(),
        "small": schema.int8(),
        "name": schema.string(optional=True),
        "count": schema.int64(default=7),
        "price": schema.decimal_(2),
        "day": schema.date(),
        "at": schema.timestamp(),
        "time": schema.time(),
    },
    name="org.shop.Row",
    version=3,
)
DATA = "org.apache.kafka.connect.data"
ROW_IN_AVRO = {
    "type": "record",
    "name": "Row",
    "namespace": "org.shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "small", "type": {"type": "int", "connect.type": "int8"}},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "count", "type": {"type": "long", "connect.default": 7}, "default": 7},
        {
            "name": "price",
            "type": {
                "type": "bytes",
                "scale": 2,
                "precision": 64,
                "connect.version": 1,
                "connect.parameters": {"scale": "2"},
                "connect.name": f"{DATA}.Decimal",
                "logicalType": "decimal",
            },
        },
        {
            "name": "day",
            "type": {
                "type": "int",
                "connect.version": 1,
                "connect.name": f"{DATA}.Date",
                "logicalType": "date",
            },
        },
        {
            "name": "at",
            "type": {
                "type": "long",
                "connect.version": 1,
                "connect.name": f"{DATA}.Timestamp",
                "logicalType": "timestamp-millis",
            },
        },
        {
            "name": "time",
            "type": {
                "type": "int",
                "connect.version": 1,
                "connect.name": f"{DATA}.Time",
                "logicalType": "time-millis",
            },
        },
    ],
    "connect.version": 3,
    "connect.name": "org.shop.Row",
}
VALUE = {
    "id": 1,
    "small": -5,
    "name": None,
    "count": 9,
    "price": decimal.Decimal("1.56"),
    "day": dt.date(2013, 1, 2),
    "at": dt.datetime(2013, 1, 2, 3, 4, 5, 6000, dt.UTC),
    "time": dt.time(3, 4, 5, 6000),
}


def test_a_struct_both_ways(registry):
    avro = converter(registry)
    data = avro.from_connect("t", ROW, VALUE)
    assert data is not None and data[:5] == b"\x00\x00\x00\x00\x01"
    assert json.loads(registry.schemas[0]["schema"]) == ROW_IN_AVRO
    assert registry.subjects == {"t-value": [1]}
    assert converter(registry).to_connect("t", data) == (ROW, VALUE)
    # Without Connect's words it is what any other program reads.
    plain = fastavro.schemaless_reader(io.BytesIO(data[5:]), fastavro.parse_schema(ROW_IN_AVRO), None)
    assert plain == VALUE


def test_schemas_are_asked_for_once(registry):
    avro = converter(registry)
    datas = avro.from_connect_many("t", ROW, [VALUE] * 10)
    reading = converter(registry)
    assert [value for _, value in reading.to_connect_many("t", datas)] == [VALUE] * 10
    assert registry.requests == [("POST", "/subjects/t-value/versions"), ("GET", "/schemas/ids/1")]


@pytest.mark.parametrize(
    ("of", "value", "avro"),
    [
        (schema.string(), "é", "string"),
        (schema.bytes_(), b"\x00\xff", "bytes"),
        (schema.float32(), 1.5, "float"),
        (schema.boolean(optional=True), True, ["null", "boolean"]),
        (schema.int16(), 5, {"type": "int", "connect.type": "int16"}),
        (schema.array(schema.int32()), [1, 2], {"type": "array", "items": "int"}),
        (schema.map_(schema.string(), schema.int64()), {"a": 1}, {"type": "map", "values": "long"}),
        (
            schema.map_(schema.int32(), schema.string()),
            {1: "a"},
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "MapEntry",
                    "namespace": "io.confluent.connect.avro",
                    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
                },
            },
        ),
        (
            schema.struct({"a": schema.struct({"b": schema.int32()})}),
            {"a": {"b": 1}},
            {
                "type": "record",
                "name": "ConnectDefault",
                "namespace": "io.confluent.connect.avro",
                "fields": [
                    {
                        "name": "a",
                        "type": {
                            "type": "record",
                            "name": "ConnectDefault2",
                            "namespace": "io.confluent.connect.avro",
                            "fields": [{"name": "b", "type": "int"}],
                        },
                    }
                ],
            },
        ),
    ],
    ids=str,
)
def test_values_and_their_schemas(registry, of, value, avro):
    data = converter(registry, key="key.converter").from_connect("t", of, value)
    assert json.loads(registry.schemas[0]["schema"]) == avro
    assert registry.subjects == {"t-key": [1]}
    assert converter(registry).to_connect("t", data) == (of, value)


class AvroGenerator(Generator):
    """Random schemas without what Avro cannot express."""

    def struct(self, depth: int) -> Schema:
        names = self.chance.sample(["a", "b_c", "d9", "class", "f0"], self.chance.randint(1, 5))
        return schema.struct({name: self.schema(depth + 1) for name in names})

    def decorated(self, of: Schema) -> Schema:
        of = super().decorated(of)
        if of.name == "named":
            of = replace(of, name=None, version=None)
        return of

    def value(self, of: Schema):
        if of.type is Type.FLOAT32 and of.default is None:
            return 1.5 if not of.optional else None
        return super().value(of)


def test_random_values_both_ways(registry):
    generator, avro = AvroGenerator(29), converter(registry)
    for _ in range(150):
        of = generator.schema()
        value = generator.value(of)
        data = avro.from_connect("t", of, value)
        assert avro.to_connect("t", data) == (of, filled(of, value)), (of, value)


def test_nulls_are_null_records(registry):
    avro = converter(registry)
    assert avro.from_connect("t", None, None) is None
    assert avro.from_connect("t", schema.string(optional=True), None) is None
    assert avro.to_connect("t", None) == (None, None)
    with pytest.raises(DataError, match="required"):
        avro.from_connect("t", schema.string(), None)
    assert registry.requests == []


@pytest.mark.parametrize(
    ("branches", "value", "name"),
    [
        (["null", "string", "int"], "x", "string"),
        (["null", "string", "int"], 5, "int"),
        (["string", {"type": "record", "name": "R", "namespace": "n", "fields": []}], {}, "R"),
    ],
)
def test_a_union_is_a_struct_with_a_field_per_type(registry, branches, value, name):
    of = {"type": "record", "name": "U", "fields": [{"name": "u", "type": branches}]}
    number = registry.add("t-value", of)
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(of), {"u": value})
    data = framed(number, stream.getvalue())
    read = converter(registry).to_connect("t", data)
    expected = {b if isinstance(b, str) else b["name"]: None for b in branches if b != "null"}
    assert read.value == {"u": {**expected, name: value}}
    assert read.schema is not None and read.schema.fields["u"].name == "io.confluent.connect.avro.Union"
    again = converter(registry)
    assert again.to_connect("t", again.from_connect("t", *read)) == read


def test_an_enum_is_a_string_and_an_enum_again_with_enhanced_support(registry):
    of = {"type": "enum", "name": "Suit", "namespace": "cards", "symbols": ["HEARTS", "SPADES"]}
    data = framed(registry.add("x", of), b"\x02")
    read = converter(registry).to_connect("t", data)
    enum = "io.confluent.connect.avro.Enum"
    assert read.value == "SPADES"
    assert read.schema is not None
    assert read.schema.parameters == {
        enum: "cards.Suit",
        f"{enum}.HEARTS": "HEARTS",
        f"{enum}.SPADES": "SPADES",
    }
    written = converter(registry, enhanced_avro_schema_support="true").from_connect("t", *read)
    assert written is not None and written[5:] == b"\x02"
    assert json.loads(registry.schemas[-1]["schema"]) == of | {
        "connect.parameters": dict(read.schema.parameters),
        "connect.name": "cards.Suit",
    }


def test_docs_of_records_and_fields_are_parameters_of_the_struct(registry):
    field = {"name": "n", "type": "int", "doc": "a number"}
    of = {"type": "record", "name": "R", "doc": "a record", "fields": [field]}
    read = converter(registry).to_connect("t", framed(registry.add("x", of), b"\x02"))
    assert read.schema is not None
    assert read.schema.parameters == {
        "io.confluent.connect.avro.record.doc": "a record",
        "io.confluent.connect.avro.field.doc.n": "a number",
    }
    converter(registry).from_connect("t", *read)
    written = json.loads(registry.schemas[-1]["schema"])
    assert (written["doc"], written["fields"][0]["doc"]) == ("a record", "a number")


def test_schemas_that_other_schemas_use(registry):
    registry.add("other", {"type": "record", "name": "o.Other", "fields": [{"name": "n", "type": "int"}]})
    number = registry.add(
        "t-value",
        {"type": "record", "name": "T", "fields": [{"name": "a", "type": "o.Other"}]},
        references=[{"name": "o.Other", "subject": "other", "version": 1}],
    )
    assert converter(registry).to_connect("t", framed(number, b"\x0a")).value == {"a": {"n": 5}}


def test_a_record_within_itself_is_refused(registry):
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "next", "type": ["null", "Node"], "default": None}],
    }
    with pytest.raises(DataError, match="Node is within itself"):
        converter(registry).to_connect("t", framed(registry.add("x", node), b"\x00"))


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "t-value"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "org.shop.Row"),
        ("TopicRecordNameStrategy", "t-org.shop.Row"),
    ],
)
def test_subjects(registry, strategy, subject):
    converter(registry, value_subject_name_strategy=strategy).from_connect("t", ROW, VALUE)
    assert list(registry.subjects) == [subject]


def test_schemas_that_are_not_registered_by_the_converter(registry):
    avro = converter(registry, auto_register_schemas="false")
    with pytest.raises(DataError, match="subject t-value does not have the schema"):
        avro.from_connect("t", ROW, VALUE)
    registry.add("t-value", ROW_IN_AVRO)
    data = avro.from_connect("t", ROW, VALUE)
    assert avro.to_connect("t", data) == (ROW, VALUE)


def test_the_latest_schema_of_a_subject(registry):
    latest = {"type": "record", "name": "L", "fields": [{"name": "id", "type": "long"}]}
    registry.add("t-value", ROW_IN_AVRO)
    registry.add("t-value", latest)
    avro = converter(registry, auto_register_schemas="false", use_latest_version="true")
    data = avro.from_connect("t", schema.struct({"id": schema.int32()}), {"id": 5})
    assert data == framed(2, b"\x0a")


def test_another_url_answers_and_a_busy_registry_is_asked_again(registry):
    client = RegistryClient(
        RegistryConfig.parse({"schema.registry.url": f"http://127.0.0.1:9,{registry.url}/"}),
        pause=lambda seconds: None,
    )
    registry.failures = [500, 429]
    assert client.register("s", "AVRO", '"int"') == 1
    assert len(registry.requests) == 3


def test_an_unreachable_registry_is_retriable_and_bad_data_is_not(registry):
    pauses: list[float] = []
    client = RegistryClient(
        RegistryConfig.parse({"schema.registry.url": "http://127.0.0.1:9"}), pause=pauses.append
    )
    with pytest.raises(
        RetriableError, match=r"schema 1 cannot be read: http://127\.0\.0\.1:9 cannot be reached"
    ):
        client.by_id(1)
    assert pauses == [0.2, 0.4]
    avro = converter(registry)
    with pytest.raises(DataError, match=r"schema 1 cannot be read: .* answers 404"):
        avro.to_connect("t", framed(1, b""))
    with pytest.raises(DataError, match="written without a schema registry"):
        avro.to_connect("t", b"{}")
    with pytest.raises(DataError, match="incompatible"):
        avro.from_connect("refused", ROW, VALUE)
    data = avro.from_connect("t", ROW, VALUE)
    with pytest.raises(DataError, match="record of topic t is not Avro of schema 1"):
        avro.to_connect("t", data[:-1])
    with pytest.raises(DataError, match="1 bytes are left"):
        avro.to_connect("t", data + b"x")
    with pytest.raises(DataError, match="dict without a schema"):
        avro.from_connect("t", None, {"a": 1})
    with pytest.raises(DataError, match="is no name in Avro"):
        avro.from_connect("t", schema.struct({"a b": schema.int8()}), {"a b": 1})


@pytest.mark.parametrize("source", ["URL", "USER_INFO"])
def test_credentials(registry, source):
    registry.user = "me:p@ss"
    url = registry.url.replace("//", "//me:p%40ss@") if source == "URL" else registry.url
    avro = make_converter(
        "value.converter",
        "avro",
        {
            "schema.registry.url": url,
            "basic.auth.credentials.source": source,
            "basic.auth.user.info": "me:p@ss" if source == "USER_INFO" else "",
        },
    )
    assert avro.from_connect("t", schema.string(), "x") == framed(1, b"\x02x")
    with pytest.raises(ConnectError, match="answers 401") as caught:
        converter(registry).from_connect("t", schema.string(), "x")
    assert not isinstance(caught.value, DataError | RetriableError)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, r"value\.converter\.schema\.registry\.url=: is required"),
        ({"schema.registry.url": "ftp://x"}, "must begin with http"),
        ({"schema.registry.url": "http://x", "value.subject.name.strategy": "Mine"}, "must be one of"),
        (
            {"schema.registry.url": "http://x", "basic.auth.credentials.source": "USER_INFO"},
            "must be user:password",
        ),
        (
            {
                "schema.registry.url": "http://x",
                "use.latest.version": "true",
                "auto.register.schemas": "true",
            },
            "must be false with",
        ),
    ],
)
def test_settings_that_cannot_be_used(settings, words):
    with pytest.raises(ConfigError, match=words):
        make_converter("value.converter", AVRO, settings)
