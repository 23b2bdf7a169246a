"""Ranges that another topic of the same name has now, and connections that tasks share. Without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kafka_client.errors import ConfigError
from plugins.spark.arrow import read_arrow
from plugins.spark.data_loss import LogEndsEarly, RecordsPurged, TopicReplaced
from plugins.spark.options import parse_options
from plugins.spark.ranges import resolve_ranges
from plugins.spark.worker_connections import IDLE_SECONDS_MAX, WorkerConnections
from tests.plugins.spark.log import Log
from tests.support.logd_process import LogdProcess


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with LogdProcess(tmp_path_factory.mktemp("ranges-logd")) as logd:
        yield Log(logd.bootstrap)


def properties(log: Log, topic: str, **options: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": log.bootstrap, "subscribe": topic, **options}


def fill(log: Log, topic: str, count: int) -> None:
    log.produce(topic, 0, *([(0, None, b"%d" % i, ())] for i in range(count)))


def test_a_topic_that_was_created_again_is_told_apart(log: Log) -> None:
    """The offsets of the new topic were read on as if they were those of the deleted one."""
    log.create("again")
    fill(log, "again", 3)
    (planned,) = asyncio.run(resolve_ranges(parse_options(properties(log, "again"))))
    assert any(planned.topic_id)
    log.delete("again")
    log.create("again")
    fill(log, "again", 5)
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        list(read_arrow(parse_options(properties(log, "again")), planned))
    without = parse_options(properties(log, "again", failOnDataLoss="false"))
    assert list(read_arrow(without, planned)) == []


def test_the_kinds_of_lost_data(log: Log) -> None:
    log.create("lost")
    fill(log, "lost", 4)
    log.delete_records("lost", 2)
    starts = {"startingOffsets": '{"lost": {"0": 1}}'}
    with pytest.raises(RecordsPurged, match="purged"):
        asyncio.run(resolve_ranges(parse_options(properties(log, "lost", **starts))))
    ends = {"endingOffsets": '{"lost": {"0": 9}}'}
    with pytest.raises(LogEndsEarly, match="ends before"):
        asyncio.run(resolve_ranges(parse_options(properties(log, "lost", **ends))))
    beyond = {"startingOffsets": '{"lost": {"0": 8}}'}
    with pytest.raises(LogEndsEarly):
        asyncio.run(resolve_ranges(parse_options(properties(log, "lost", **beyond))))


def test_a_resolved_start_after_the_end_is_refused(log: Log) -> None:
    log.create("order")
    log.produce("order", 0, [(1000, None, b"a", ()), (2000, None, b"b", ()), (3000, None, b"c", ())])
    options = {"startingOffsets": '{"order": {"0": 2}}', "endingTimestamp": "2000"}
    with pytest.raises(ConfigError, match="greater than the end 1"):
        asyncio.run(resolve_ranges(parse_options(properties(log, "order", **options))))


def test_a_groups_offsets_are_where_a_read_starts(log: Log) -> None:
    from kafka_client import Admin, Client, TopicPartition

    log.create("grouped", 2)
    fill(log, "grouped", 3)

    async def commit() -> None:
        async with Client(log.bootstrap) as client:
            await Admin(client).alter_group_offsets("g", {TopicPartition("grouped", 0): 2})

    asyncio.run(commit())
    options = parse_options(properties(log, "grouped", startingOffsets="group", groupId="g"))
    assert [(r.start, r.end) for r in asyncio.run(resolve_ranges(options))] == [(2, 3), (0, 0)]


def test_tasks_reuse_a_connection(log: Log) -> None:
    now = 0.0
    connections = WorkerConnections(clock=lambda: now)
    with connections.borrow(log.bootstrap, {}, {}) as first:
        client = first.run(first.client())
        with connections.borrow(log.bootstrap, {}, {}) as second:
            assert second is not first
    with connections.borrow(log.bootstrap, {}, {}) as again:
        assert again is first
        assert again.run(again.client()) is client
    with connections.borrow(log.bootstrap, {"client_id": "other"}, {}) as other:
        assert other not in (first, second)
    now = IDLE_SECONDS_MAX + 1
    with connections.borrow(log.bootstrap, {}, {}) as fresh:
        assert fresh not in (first, second, other)
    connections.close()
    assert connections.idle_count == 0


def test_a_connection_is_closed_after_an_error(log: Log) -> None:
    connections = WorkerConnections()
    with pytest.raises(KeyError), connections.borrow(log.bootstrap, {}, {}):
        raise KeyError
    assert connections.idle_count == 0
