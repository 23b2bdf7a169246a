"""A planned range whose records are gone by the time a task reads it. No Spark is needed for this."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kafka_client.errors import ConfigError
from kafka_client.fetcher.session import CLOSING_EPOCH
from kafka_client.records import NewRecord
from plugins.spark.arrow import read_arrow
from plugins.spark.errors import DataLost
from plugins.spark.log_range import LogRange
from plugins.spark.options import parse_options
from plugins.spark.ranges import resolve_ranges
from tests.kafka_client.fake_broker import FakeBroker
from tests.kafka_client.session_broker import SessionBroker
from tests.plugins.spark.log import Log
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with LogdProcess(tmp_path_factory.mktemp("arrow-logd")) as logd:
        yield Log(logd.bootstrap)


def offsets(log: Log, log_range: LogRange, **options: str) -> list[int]:
    properties = {"kafka.bootstrap.servers": log.bootstrap, "subscribe": log_range.topic, **options}
    batches = read_arrow(parse_options(properties), log_range)
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


@deep
@pytest.mark.parametrize(("start", "expected"), [(2, [2, 3]), (4, []), (6, [])])
def test_a_log_start_that_has_moved(log: Log, start: int, expected: list[int]) -> None:
    topic = f"moved-{start}"
    log.create(topic)
    records: list[NewRecord] = [(0, None, b"%d" % i, ()) for i in range(6)]
    log.produce(topic, 0, records[:2], records[2:4], records[4:])
    log.delete_records(topic, start)
    planned = LogRange(topic, 0, 0, 4)
    with pytest.raises(DataLost, match=f"offset 0 is wanted, the log has {start}"):
        offsets(log, planned)
    assert offsets(log, planned, failOnDataLoss="false") == expected


async def test_fetches_say_where_the_reader_stands_and_a_replica_nearby_is_read_from() -> None:
    """Fetches carry the client's rack, which once was accepted and had no effect."""
    async with FakeBroker(1) as leader, FakeBroker(2, leader.nodes) as replica:
        led, near = SessionBroker(leader), SessionBroker(replica)
        leader.topics["t"] = replica.topics["t"] = {0: 1}
        for broker in (led, near):
            broker.append(0, b"a", b"b")
        led.replicas[0] = 2
        properties = {
            "kafka.bootstrap.servers": leader.bootstrap,
            "subscribe": "t",
            "kafka.client.rack": "r1",
        }

        def values() -> list[bytes]:
            batches = read_arrow(parse_options(properties), LogRange("t", 0, 0, 2))
            return [value for batch in batches for value in batch.column("value").to_pylist()]

        assert await asyncio.to_thread(values) == [b"a", b"b"]
        requests = [request for request in led.requests + near.requests if request.epoch != CLOSING_EPOCH]
        assert {request.rack_id for request in requests} == {"r1"}
        assert near.requests


def test_offsets_of_a_partition_that_is_not_there_are_refused(log: Log) -> None:
    """Offsets must name exactly the partitions that are read, as in Spark's Kafka source.

    Once a misspelt partition was left out silently.
    """
    log.create("named", 2)
    properties = {"kafka.bootstrap.servers": log.bootstrap, "subscribe": "named"}
    for key in ("startingOffsets", "endingOffsets"):
        options = parse_options({**properties, key: '{"named": {"0": 0, "1": 0, "7": 5}, "namd": {"0": 1}}'})
        with pytest.raises(ConfigError, match="namd-0, named-7") as caught:
            asyncio.run(resolve_ranges(options))
        assert caught.value.key == key
