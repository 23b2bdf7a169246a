"""Serdes of values behind a schema's id, against a registry that speaks Confluent's REST API."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory

from streams import StreamsBuilder, log_and_continue
from streams.errors import RegistryFailed, RegistryUnavailable, StreamsError
from streams.serdes import (
    RegisteredAvro,
    RegisteredJson,
    RegisteredProtobuf,
    RegistryClient,
    Serde,
    record_name,
)
from streams.serdes import registry as registries
from streams.serdes.registry import LruCache, Schema
from streams.testing import TopologyTestDriver
from streams.topology import Handlers
from tests.support.registry import NEW, StandInRegistry, asked_registry

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "item", "type": "string"}, {"name": "pieces", "type": "int"}],
}
PRICED = {**ORDER, "fields": [ORDER["fields"][0], {"name": "price", "type": "double", "default": 1.5}]}
FRAME = b"\x00" + NEW.to_bytes(4, "big")
OLD = b"\x00\x00\x00\x00\x07"
CHAIR = {"item": "chair", "pieces": 4}
CHAIR_BYTES = b"\x0achair\x08"


@pytest.fixture
def stand_in() -> Iterator[StandInRegistry]:
    with asked_registry({"/schemas/ids/7": {"schema": json.dumps(ORDER)}}) as registry:
        yield registry


@pytest.fixture
def client(stand_in: StandInRegistry) -> RegistryClient:
    return RegistryClient(stand_in.address, pause=lambda seconds: None)


def test_avro_is_confluents(client: RegistryClient, stand_in: StandInRegistry) -> None:
    serde = RegisteredAvro(client, ORDER).of_topic("orders", is_key=False)
    assert serde.serialize(CHAIR) == FRAME + CHAIR_BYTES
    assert serde.serialize(CHAIR) == FRAME + CHAIR_BYTES
    assert stand_in.posted == [("/subjects/orders-value/versions", ORDER)], "asked once"
    assert serde.deserialize(OLD + CHAIR_BYTES) == CHAIR


def test_a_value_is_read_as_the_readers_schema(client: RegistryClient) -> None:
    expected = {"item": "chair", "price": 1.5}
    assert RegisteredAvro(client, PRICED).deserialize(OLD + CHAIR_BYTES) == expected
    assert RegisteredAvro(client, ORDER, reader_schema=PRICED).deserialize(OLD + CHAIR_BYTES) == expected
    assert RegisteredAvro(client).deserialize(OLD + CHAIR_BYTES) == CHAIR
    with pytest.raises(ValueError, match="reads only"):
        RegisteredAvro(client).serialize(CHAIR)


def test_subjects(client: RegistryClient, stand_in: StandInRegistry) -> None:
    RegisteredAvro(client, json.dumps(ORDER)).of_topic("t", is_key=True).serialize(CHAIR)
    RegisteredAvro(client, ORDER, subject=record_name).of_topic("t", is_key=True).serialize(CHAIR)
    RegisteredAvro(client, ORDER, subject="a/b").serialize(CHAIR)
    assert RegisteredAvro(client, ORDER, schema_id=9).serialize(CHAIR)[:5] == b"\0\0\0\0\x09"
    assert [path for path, _ in stand_in.posted] == [
        "/subjects/t-key/versions",
        "/subjects/shop.Order/versions",
        "/subjects/a%2Fb/versions",
    ]
    with pytest.raises(ValueError, match=r"shop.Order is written where its topic is not known.*subject="):
        RegisteredAvro(client, ORDER).serialize(CHAIR)


@dataclass
class Point:
    x: int


def test_json_has_the_types_schema(client: RegistryClient, stand_in: StandInRegistry) -> None:
    serde: Any = RegisteredJson(client, Point).of_topic("points", is_key=False)
    assert serde.serialize(Point(1)) == FRAME + b'{"x":1}'
    ((path, schema),) = stand_in.posted
    assert path == "/subjects/points-value/versions"
    assert "integer" in json.dumps(schema)
    assert serde.deserialize(OLD + b'{"x":2}') == Point(2)
    with pytest.raises(ValueError, match="Expected `int`"):
        serde.deserialize(OLD + b'{"x":"2"}')


def messages() -> tuple[Any, Any, bytes]:
    """Return the classes Outer and Outer.Other.Inner, and their file."""
    file = descriptor_pb2.FileDescriptorProto(name="nested.proto", package="shop", syntax="proto3")
    outer = file.message_type.add(name="Outer")
    outer.nested_type.add(name="One")
    inner = outer.nested_type.add(name="Other").nested_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=5, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptors = [pool.FindMessageTypeByName(name) for name in ("shop.Outer", "shop.Outer.Other.Inner")]
    first, last = map(message_factory.GetMessageClass, descriptors)
    return first, last, file.SerializeToString()


def test_protobuf_has_message_indexes(client: RegistryClient, stand_in: StandInRegistry) -> None:
    outer, inner, file = messages()
    serde: Any = RegisteredProtobuf(client, inner).of_topic("t", is_key=False)
    assert serde.serialize(inner(x=5)) == FRAME + b"\x06\x00\x02\x00" + b"\x08\x05"
    assert serde.deserialize(OLD + b"\x06\x00\x02\x00\x08\x05").x == 5
    first = RegisteredProtobuf(client, outer, subject=record_name)
    assert first.serialize(outer()) == FRAME + b"\x00"
    assert stand_in.posted[0] == ("/subjects/t-value/versions", base64.b64encode(file).decode())
    assert stand_in.posted[1][0] == "/subjects/shop.Outer/versions"
    with pytest.raises(ValueError, match="end too early"):
        serde.deserialize(OLD + b"\x06\x00")


def test_protobuf_of_googles_own(client: RegistryClient) -> None:
    serde: Any = RegisteredProtobuf(client, duration_pb2.Duration, schema_id=7)
    assert serde.deserialize(serde.serialize(duration_pb2.Duration(seconds=3))).seconds == 3


@pytest.mark.parametrize("data", [b"", b"\x00\x00", b"\x01\x00\x00\x00\x07x"])
def test_bytes_without_an_id_are_named(client: RegistryClient, data: bytes) -> None:
    protobuf: RegisteredProtobuf[Any] = RegisteredProtobuf(client, messages()[0])
    serdes: list[Serde[Any]] = [RegisteredAvro(client), RegisteredJson(client, dict), protobuf]
    for serde in serdes:
        with pytest.raises(ValueError, match=r"begin with a schema's id.*without a registry"):
            serde.deserialize(data)


def test_what_a_registry_refuses_names_subject_and_url(
    client: RegistryClient, stand_in: StandInRegistry
) -> None:
    serde = RegisteredAvro(client, ORDER, subject="refused")
    with pytest.raises(
        RegistryFailed, match=r"subject 'refused'.*/subjects/refused/versions answers 404"
    ) as error:
        serde.serialize(CHAIR)
    assert not isinstance(error.value, RegistryUnavailable)
    assert "Schema being registered is bad" in str(error.value)
    with pytest.raises(RegistryFailed, match=r"schema 8 cannot be read: http://.*/schemas/ids/8 answers 404"):
        serde.deserialize(b"\0\0\0\0\x08" + CHAIR_BYTES)
    stand_in.answers["/schemas/ids/8"] = {"schema": "{}", "schemaType": "JSON"}
    with pytest.raises(ValueError, match="schema 8 is one of JSON, not of AVRO"):
        serde.deserialize(b"\0\0\0\0\x08" + CHAIR_BYTES)


def test_who_asks_says_who_they_are(stand_in: StandInRegistry) -> None:
    client = RegistryClient(stand_in.address.replace("//", "//me:p%40ss@"))
    assert client.get(7) == Schema("AVRO", json.dumps(ORDER))
    assert stand_in.authorization == "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert "p%40ss" not in client.url


def test_what_is_kept_is_bounded() -> None:
    cache: LruCache[int, int] = LruCache(2)
    made: list[int] = []

    def make(key: int) -> int:
        made.append(key)
        return key

    assert [cache.get(key, make) for key in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert made == [1, 2, 3, 2] and len(cache) == 2


def test_an_outage_loses_no_record(stand_in: StandInRegistry) -> None:
    """An outage of the registry raises, whatever the handler: a handler that skips bad records would skip
    all.
    """
    pauses: list[float] = []
    away = RegistryClient("http://127.0.0.1:1", pause=pauses.append)
    builder = StreamsBuilder(key_serde=str)
    builder.stream("in", value_serde=RegisteredAvro(away)).to("out", value_serde=dict)
    with TopologyTestDriver(builder, handlers=Handlers(deserialization=log_and_continue)) as driver:
        with pytest.raises(RegistryUnavailable, match=r"schema 7 .*cannot be reached"):
            driver.pipe("in", b"k", OLD + CHAIR_BYTES, 0)
    assert pauses == [0.2, 0.4, 0.8] and len(pauses) == registries.TRIES - 1
    builder = StreamsBuilder(key_serde=str)
    builder.stream("in", value_serde=dict).to("out", value_serde=RegisteredAvro(away, ORDER))
    with TopologyTestDriver(builder, handlers=Handlers(production=log_and_continue)) as driver:
        with pytest.raises(StreamsError, match=r"subject 'out-value'.*cannot be reached"):
            driver.pipe("in", b"k", json.dumps(CHAIR).encode(), 0)


def test_a_schema_that_is_not_there_is_a_bad_record(client: RegistryClient) -> None:
    builder = StreamsBuilder(key_serde=str)
    builder.stream("in", value_serde=RegisteredAvro(client)).to("out", value_serde=dict)
    with TopologyTestDriver(builder, handlers=Handlers(deserialization=log_and_continue)) as driver:
        driver.pipe("in", b"k", b"\0\0\0\0\x08" + CHAIR_BYTES, 0)
        driver.pipe("in", b"k", OLD + CHAIR_BYTES, 0)
        assert driver.output_topic("out").read_key_values() == [("k", CHAIR)]


def test_a_topology_registers_by_topic(client: RegistryClient, stand_in: StandInRegistry) -> None:
    stand_in.answers[f"/schemas/ids/{NEW}"] = {"schema": json.dumps(ORDER)}
    builder = StreamsBuilder(key_serde=str, value_serde=RegisteredAvro(client, ORDER))
    orders = builder.stream("orders").select_key(lambda key, order: order["item"])
    last = orders.group_by_key().reduce(lambda one, other: other, store="last")
    last.to_stream().to("out")
    orders.to(lambda key, order, context: f"chosen-{key}")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("orders").pipe_input("k", CHAIR)
        assert driver.output_topic("out").read_key_values() == [("chair", CHAIR)]
    subjects = {path.split("/")[2] for path, _ in stand_in.posted}
    repartitioned = "last-repartition-value"
    assert subjects >= {repartitioned, "last-changelog-value", "out-value", "chosen-chair-value"}


def test_fastavro_reads_what_is_written(client: RegistryClient) -> None:
    import io

    data = RegisteredAvro(client, ORDER, subject="s").serialize(CHAIR)
    assert fastavro.schemaless_reader(io.BytesIO(data[5:]), fastavro.parse_schema(ORDER), None) == CHAIR
