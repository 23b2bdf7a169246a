"""Converters, against the bytes Kafka's own write (taken from its JsonConverterTest where it has them)."""

import datetime as dt
import decimal
import json
import sys
from types import SimpleNamespace

import pytest

from connect.api import DataError, schema
from connect.converters import (
    Converter,
    JsonConverter,
    make_converter,
    make_header_converter,
    unknown_settings,
)
from connect.errors import ConfigError

BARE = {"schemas.enable": "false"}


def converter(name: str = "json", **config: str):
    return make_converter("value.converter", name, {k.replace("_", "."): v for k, v in config.items()})


def test_bare_json_both_ways():
    bare = make_converter("value.converter", "org.apache.kafka.connect.json.JsonConverter", BARE)
    values = [{"a": 1, "b": [None, 1.5]}, None, "text", 7]
    encoded = bare.from_connect_many("t", None, values)
    assert encoded == [b'{"a":1,"b":[null,1.5]}', None, b'"text"', b"7"]
    assert [v for _, v in bare.to_connect_many("t", encoded)] == values


def test_bare_json_that_is_none_is_the_records_fault():
    bare = converter(schemas_enable="false")
    with pytest.raises(DataError, match="topic t"):
        bare.to_connect("t", b"{")
    with pytest.raises(DataError):
        bare.from_connect("t", None, object())


PLAIN = schema.struct({"id": schema.int32(), "name": schema.string(optional=True)}, name="row", version=2)


def test_the_envelope_as_kafka_writes_it():
    encoded = converter().from_connect("t", PLAIN, {"id": 1, "name": None})
    assert json.loads(encoded or b"") == {
        "schema": {
            "type": "struct",
            "fields": [
                {"type": "int32", "optional": False, "field": "id"},
                {"type": "string", "optional": True, "field": "name"},
            ],
            "optional": False,
            "name": "row",
            "version": 2,
        },
        "payload": {"id": 1, "name": None},
    }


@pytest.mark.parametrize("name", ["string", "bytes"])
def test_many_values_are_read_as_each_is(name):
    of = converter(name)
    datas = [b"a", None, b"", "ö".encode()]
    assert of.to_connect_many("t", datas) == [of.to_connect("t", data) for data in datas]
    assert list(of.to_connect_many("t", [])) == []


def test_many_values_of_another_encoding_are_an_error_that_names_the_topic():
    with pytest.raises(DataError, match="record of topic t is not UTF-8"):
        converter("string").to_connect_many("t", [b"a", b"\xff"])
    (pair,) = converter("string", converter_encoding="latin-1").to_connect_many("t", [b"\xff"])
    assert pair == converter("string", converter_encoding="latin-1").to_connect("t", b"\xff")
    assert pair[1] == "ÿ"


@pytest.mark.parametrize(
    ("of", "value", "payload"),
    [
        (schema.boolean(), True, True),
        (schema.int64(), 2**62, 2**62),
        (schema.float32(), 1.5, 1.5),
        (schema.string(), "é", "é"),
        (schema.bytes_(), b"test-string", "dGVzdC1zdHJpbmc="),
        (schema.array(schema.int32()), [1, 2], [1, 2]),
        (schema.map_(schema.string(), schema.int32()), {"k": 1}, {"k": 1}),
        (schema.map_(schema.int32(), schema.int32()), {1: 2}, [[1, 2]]),
        (schema.date(), dt.date(2013, 1, 2), 15707),
        (schema.time(), dt.time(0, 0, 14, 400_000), 14_400),
        (schema.timestamp(), dt.datetime(2013, 1, 1, tzinfo=dt.UTC), 1_356_998_400_000),
        (schema.timestamp(), dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC), -1),
        (schema.decimal_(2), decimal.Decimal("1.56"), "AJw="),
        (schema.decimal_(2), decimal.Decimal("-1.28"), "gA=="),
        (schema.decimal_(2), decimal.Decimal("123456789012345678901234567890.12"), "CbpY4nlU3P4CsuQ="),
        (schema.array(schema.struct({"at": schema.date(optional=True)})), [{"at": None}], [{"at": None}]),
        (schema.string(optional=True), None, None),
    ],
)
def test_values_in_the_envelope(of, value, payload):
    encoded = converter().from_connect("t", of, value)
    if of.name == schema.DECIMAL and len(str(value)) > 10:  # computed, not Kafka's: only has to come back
        payload = json.loads(encoded)["payload"]
    assert json.loads(encoded)["payload"] == payload
    back = converter().to_connect("t", encoded)
    assert back.value == value
    assert back.schema == of


def test_numeric_decimals_lose_nothing():
    of = schema.struct({"d": schema.decimal_(20), "f": schema.float64()})
    value = {"d": decimal.Decimal("12345678901234567890.12345678901234567890"), "f": 0.1}
    numeric = converter(decimal_format="NUMERIC")
    encoded = numeric.from_connect("t", of, value)
    assert b"12345678901234567890.12345678901234567890" in encoded
    back = numeric.to_connect("t", encoded).value
    assert back == value
    assert isinstance(back["f"], float)


def test_defaults_fill_nulls_unless_told_otherwise():
    of = schema.struct({"n": schema.int32(optional=True, default=3)})
    assert json.loads(converter().from_connect("t", of, {"n": None}))["payload"] == {"n": 3}
    keep = converter(replace_null_with_default="false")
    assert json.loads(keep.from_connect("t", of, {"n": None}))["payload"] == {"n": None}
    back = converter().to_connect("t", keep.from_connect("t", of, {"n": None}))
    assert back.value == {"n": 3}
    assert back.schema == of


def test_schemaless_values_in_the_envelope():
    assert converter().from_connect("t", None, {"a": 1}) == b'{"schema":null,"payload":{"a":1}}'
    assert converter().from_connect("t", None, None) is None
    assert converter().to_connect("t", b'{"schema":null,"payload":[1]}') == (None, [1])
    assert converter().to_connect("t", None) == (None, None)


def test_a_schema_without_the_envelope_still_shapes_the_value():
    bare = make_converter("value.converter", "json", BARE)
    assert (
        bare.from_connect("t", schema.struct({"d": schema.date()}), {"d": dt.date(1970, 1, 2)}) == b'{"d":1}'
    )


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}',
        b'{"schema":null}',
        b'{"schema":null,"payload":1,"more":2}',
        b'{"schema":{"type":"nonsense"},"payload":1}',
        b'{"schema":{"type":"struct","fields":[{"type":"int32","field":"a"}]},"payload":{}}',
        b'{"schema":{"type":"bytes"},"payload":"%%"}',
        b'{"schema":{"type":"map"},"payload":{}}',
        b"\xff",
    ],
)
def test_what_is_no_envelope_is_a_data_error(data):
    with pytest.raises(DataError):
        converter().to_connect("t", data)


@pytest.mark.parametrize(
    ("of", "value"),
    [
        (schema.int8(), 128),
        (schema.int32(), "1"),
        (schema.int32(), True),
        (schema.int32(), None),
        (PLAIN, {"name": "x"}),
        (schema.array(schema.string()), [1]),
        (schema.map_(schema.string(), schema.int32()), {"a": "b"}),
        (schema.decimal_(1), decimal.Decimal("1.23")),
    ],
)
def test_a_value_that_does_not_fit_its_schema(of, value):
    with pytest.raises(DataError):
        converter().from_connect("t", of, value)


def test_strings():
    strings = make_converter("key.converter", "org.apache.kafka.connect.storage.StringConverter", {})
    values = ["UA", "é", None, 1, True, 1.5, {"a": 1}]
    expected = [b"UA", "é".encode(), None, b"1", b"true", b"1.5", b'{"a":1}']
    assert strings.from_connect_many("t", None, values) == expected
    assert strings.from_connect_many("t", None, [1, True, 1.0]) == [b"1", b"true", b"1.0"]
    assert strings.from_connect_many("t", None, ["a", "b", "a"]) == [b"a", b"b", b"a"]
    assert strings.to_connect("t", "é".encode()).value == "é"
    with pytest.raises(DataError):
        strings.to_connect("t", b"\xff")
    assert converter("string", converter_encoding="latin-1").from_connect("t", None, "é") == b"\xe9"
    with pytest.raises(DataError, match="topic t cannot be written as latin-1"):
        converter("string", converter_encoding="latin-1").from_connect_many("t", None, ["é", "€"])


def test_byte_arrays():
    raw = converter("ByteArrayConverter")
    assert raw.from_connect("t", None, b"\x00") == b"\x00"
    assert raw.to_connect("t", b"\x00").value == b"\x00"
    with pytest.raises(DataError):
        raw.from_connect("t", None, "text")


def test_simple_headers():
    simple = make_header_converter("org.apache.kafka.connect.storage.SimpleHeaderConverter", {})
    for value in ("text", 5, 1.5, True, [1, "a"], {"k": 1}, None):
        data = simple.from_connect_header("t", "h", None, value)
        assert simple.to_connect_header("t", "h", data).value == value
    assert simple.to_connect_header("t", "h", b"\xff").value == "�"


def test_unknown_converters_are_named():
    with pytest.raises(ConfigError, match="json"):
        converter("jsno")
    with pytest.raises(ConfigError, match="not a converter"):
        converter("connect.api:SourceRecord")


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ('{"type":"int32"}', '"abc"', "value is str"),
        ('{"type":"int32"}', "1.5", "value is float"),
        ('{"type":"int8"}', "1000", "out of range"),
        ('{"type":"string"}', "5", "value is int"),
        ('{"type":"boolean"}', "1", "value is int"),
        ('{"type":"array","items":{"type":"int32"}}', '"ab"', r"value\[0\] is str"),
        ('{"type":"struct","fields":[{"field":"a","type":"int32"}]}', '{"a":"x"}', r"value\.a is str"),
        ('{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp"}', "9" * 18, "Overflow"),
    ],
)
def test_an_envelope_that_lies(kind, payload, words):
    with pytest.raises(DataError, match=words):
        converter().to_connect("t", f'{{"schema":{kind},"payload":{payload}}}'.encode())


def test_a_converter_that_cannot_be_loaded_is_named_with_its_key():
    with pytest.raises(ConfigError, match=r"value\.converter=no\.such:Thing"):
        converter("no.such:Thing")


class Picky(Converter):
    """Somebody's own, with settings that it reads in its own way."""

    def __init__(self, config, *, is_key):
        self.level = int(config["level"])
        if self.level > 9:
            raise ConfigError("level", self.level, "must be 0 to 9")


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ("10", "value.converter.level=10: must be 0 to 9"),
        ("x", "my_converters:Picky: cannot be made: ValueError"),
    ],
)
def test_settings_a_converter_refuses_are_the_configs_fault(monkeypatch, level, words):
    monkeypatch.setitem(sys.modules, "my_converters", SimpleNamespace(Picky=Picky))
    with pytest.raises(ConfigError, match=words):
        make_converter("value.converter", "my_converters:Picky", {"level": level})


def test_settings_a_converter_does_not_know():
    unknown = unknown_settings(
        "value.converter", "json", {"schemas.enabled": "false", "schemas.enable": "true"}
    )
    assert unknown == {"schemas.enabled": "schemas.enable"}
    assert unknown_settings("value.converter", "bytes", {"anything": "1"}) == {}


@pytest.mark.parametrize(
    "value",
    [{"n": 1, "amount": 100}, {"n": 1, 5: 1}, {"n": 1, "inner": {"a": "x", "b": "y"}}],
    ids=str,
)
def test_a_struct_with_a_field_that_its_schema_does_not_declare_is_refused(value):
    """Java's Struct.put refuses it, too: the field would be dropped."""
    inner = schema.struct({"a": schema.string()}, optional=True)
    converter = JsonConverter({}, is_key=False)
    with pytest.raises(DataError, match=r"does not declare: (amount|5|b)$"):
        converter.from_connect("t", schema.struct({"n": schema.int32(), "inner": inner}), value)


def test_json_with_a_field_that_its_schema_does_not_declare_is_read_without_it():
    """Java's JsonConverter drops such a field, too."""
    data = (
        b'{"schema":{"type":"struct","fields":[{"type":"int32","field":"n"}]},"payload":{"n":1,"amount":100}}'
    )
    assert JsonConverter({}, is_key=False).to_connect("t", data).value == {"n": 1}
