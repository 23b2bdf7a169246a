"""Settings of what a broker does by the clock, where only the disk or the log can tell: the broker runs in a
thread of the test, or by a clock of its own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch
from kafka_client.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from logd.broker.background.compaction import Compaction
from tests.faults.simulation import NOW, Client, Life, SimulatedBroker, new_disk, repeatable
from tests.logd.broker.test_durability import Disk, Running, disk, make
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

__all__ = ["disk"]


@pytest.mark.parametrize(
    "settings", [{"log.flush.interval.ms": "0"}, {"log.flush.scheduler.interval.ms": "1"}]
)
def test_records_are_forced_to_the_disk_in_time(tmp_path: Path, disk: Disk, settings: dict[str, str]) -> None:
    """Records are synced before the response with an interval of 0 ms, and after it otherwise."""
    with Running(tmp_path, settings) as logd, RawClient(logd.port) as client:
        make(client, "t")
        make(client, "own", flush_ms="3600000")
        before = disk.done
        assert client.produce("own", [(1, None, b"v", ())]).error_code == 0
        assert disk.done == before, "the topic's own setting goes before"
        assert client.produce("t", [(1, None, b"v", ())]).error_code == 0
        if "log.flush.interval.ms" in settings:
            assert disk.done > before
        wait_for(lambda: disk.done > before)


def test_a_silent_producer_is_forgotten_in_time(tmp_path: Path) -> None:
    with Running(tmp_path, {"producer.id.expiration.ms": "1"}) as logd, RawClient(logd.port) as client:
        make(client, "t")
        for sequence in (0, 1):
            batch = build_batch(
                [(1, None, b"v", ())], producer_id=7, producer_epoch=0, base_sequence=sequence
            )
            assert client.produce("t", batch).error_code == ErrorCode.NONE
        assert producers(client) == [7]
        began_ms = logd.broker.now_ms()
        wait_for(lambda: logd.broker.now_ms() > began_ms + 1)
        logd.run(logd.broker.housekeeping.expire_producers())
        assert producers(client) == []


def producers(client: RawClient) -> list[int]:
    topic_row = TopicRequest(name="t", partition_indexes=[0])
    (topic,) = client.request(DescribeProducersRequest(topics=[topic_row]), 0).topics
    return [each.producer_id for each in topic.partitions[0].active_producers]


def test_so_many_jobs_run_at_one_time(tmp_path: Path) -> None:
    with Running(tmp_path, {"background.threads": "3"}) as logd:
        assert logd.broker._executor.statistics()["running_max"] == 3  # type: ignore[attr-defined]


def by_its_clock(
    tmp_path: Path, work: Callable[[SimulatedBroker], Coroutine[Any, Any, None]], settings: dict[str, str]
) -> None:
    """Run a simulated broker, whose time passes at once."""
    rng = random.Random(1)
    with repeatable(1):
        Life(new_disk(tmp_path / "disk", rng), rng, began_ms=NOW, **settings).run(work)


def test_committed_offsets_are_kept_so_long(tmp_path: Path) -> None:
    async def work(broker: SimulatedBroker) -> None:
        client = Client(broker)
        await broker.catalog.create("t", 1, {})
        await broker.groups.ensure_topic()
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
        answer = await client.request(OffsetCommitRequest(group_id="g", topics=topics), 8)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        await asyncio.sleep(115)
        assert await committed(client) == 5
        await asyncio.sleep(10)
        assert await committed(client) == -1

    settings = {"offsets.retention.minutes": "2", "offsets.retention.check.interval.ms": "1000"}
    by_its_clock(tmp_path, work, settings)


async def committed(client: Client) -> int:
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    answer = await client.request(OffsetFetchRequest(group_id="g", topics=topics), 7)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


@pytest.mark.parametrize(
    ("settings", "looks"),
    [
        ({"log.cleaner.backoff.ms": "500"}, range(19, 22)),
        ({"log.cleaner.backoff.ms": "5000"}, range(1, 4)),
        ({"log.cleaner.enable": "false"}, range(1)),
    ],
)
def test_how_often_a_cleaner_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], looks: range
) -> None:
    """Cleaners look for work as often as the settings say, counted in ten seconds without work."""
    looked = 0
    look = Compaction.look

    async def counted(compaction: Compaction) -> None:
        nonlocal looked
        looked += 1
        await look(compaction)

    async def work(broker: SimulatedBroker) -> None:
        nonlocal looked
        looked = 0
        await asyncio.sleep(10)
        assert looked in looks

    monkeypatch.setattr(Compaction, "look", counted)
    by_its_clock(tmp_path, work, {"log.cleaner.enable": "true", **settings})
