"""Faust beside us: codecs and records as serdes, a topology in a worker's life."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import faust
import pytest
from mode import Service

from kafka_client import Admin, BatchProducer, Client, NewTopic
from streams import State, StreamsBuilder
from streams.faust import add_topology, codec_serde, record_serde
from streams.testing import TopologyTestDriver
from tests.streams.support.counting import read_last
from tests.support.logd_process import LogdProcess


class Order(faust.Record):
    item: str
    pieces: int = 1


class Packed(faust.Record, serializer="json|binary"):
    item: str


@pytest.mark.parametrize("value", [Order("tea", 2), Packed("tea")])
def test_records_are_serdes(value: faust.Record) -> None:
    serde = record_serde(type(value))
    assert serde.serialize(value) == value.dumps(serializer=value._options.serializer or "json")
    assert serde.deserialize(serde.serialize(value)) == value


def test_codecs_are_serdes() -> None:
    serde = codec_serde("json|binary")
    assert serde.deserialize(serde.serialize({"a": [1]})) == {"a": [1]}


def test_a_topology_of_records() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=record_serde(Order))
    totals = (
        builder.stream("orders")
        .group_by_key()
        .aggregate(lambda: 0, lambda key, order, total: total + order.pieces, value_serde=int)
    )
    totals.to_stream().to("pieces")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("orders").pipe_all([("a", Order("tea", 2)), ("a", Order("pot"))])
        assert driver.output_topic("pieces").read_table() == {"a": 3}


async def test_a_topology_lives_in_a_faust_worker(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """A Faust worker starts and stops the topology. The app's own services are not started here."""
    name = new_name("shop")
    builder = StreamsBuilder(key_serde=str, value_serde=record_serde(Order))
    builder.stream(f"{name}-in").filter(lambda key, order: order.pieces > 1).to(f"{name}-out")
    app = faust.App(name, broker=f"kafka://{logd.bootstrap}", datadir=str(tmp_path / "faust"))
    streams = add_topology(app, builder.build(), state_dir=str(tmp_path / "state"))
    assert streams.config.application_id == f"{name}-streams"
    assert streams.config.bootstrap_servers == logd.bootstrap
    (registered,) = app._extra_services
    assert issubclass(registered, Service)
    async with Client(logd.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(f"{name}-in", 1, 1), NewTopic(f"{name}-out", 1, 1)])
        async with BatchProducer(client) as producer:
            rows = [(1, b"a", Order("tea", pieces).dumps(serializer="json"), ()) for pieces in (1, 2)]
            await producer.send(f"{name}-in", 0, rows)
    service = registered()
    async with service:
        async with asyncio.timeout(60):
            await streams.wait_until_caught_up()
    assert streams.state is State.NOT_RUNNING
    assert len(await read_last(logd.bootstrap, f"{name}-out", partitions=1)) == 1
