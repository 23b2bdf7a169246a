"""A flow's metrics have MirrorMaker's names and agree with what the flow did."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from kafka_client import Admin, Client, ListedOffset, TopicPartition
from kafka_client.errors import ConnectionClosed
from kafka_client.metrics.exposition import exposition
from kafka_client.metrics.metrics import Metrics, Values
from mirror import start_positions
from mirror.errors import NotPlaced
from mirror.link import Link
from mirror.start_positions import AT_A_TIME
from tests.mirror.pair import Pair, numbered, produce
from tests.support.documented_metrics import check_documented
from tests.support.waiting import until

NOW = 1_600_000_000.0
"""Seconds; `numbered` begins at 1,357,000,000."""


async def test_numbers_are_those_of_what_was_done(pair: Pair, new_name: Callable[[], str]) -> None:
    topic = new_name()
    await pair.create(topic, 2)
    await produce(pair.dc1, topic, {0: [numbered(50), numbered(30, 1000)], 1: [numbered(5)]})
    metrics = Metrics()
    async with Link(pair.link(topic), clock=lambda: NOW, metrics=metrics) as link:
        await link.run(until_caught_up=True)
        of_flow = {"source": "dc1", "target": "dc2"}
        values = metrics.values("MirrorSourceConnector", topic=f"dc1.{topic}", partition="0", **of_flow)
        assert values["record-count"] == 80
        assert values["record-rate"] / 80 == pytest.approx(
            values["byte-rate"] / values["byte-count"], rel=0.1
        )
        assert values["byte-count"] == min(link.status().items())[1].bytes > 80
        newest, oldest = (NOW - 1_357_000_000) * 1000 - 1029, (NOW - 1_357_000_000) * 1000 - 49
        assert (values["record-age-ms"], values["record-age-ms-min"]) == (newest, newest)
        assert (values["record-age-ms-max"], values["record-age-ms-avg"]) == (oldest, (oldest + newest) / 2)
        assert values["replication-latency-ms-max"] == oldest
        assert metrics.values("MirrorSourceConnector")["record-count"] == 85
        assert metrics.values("mirror-partition")["records-lag"] == 0
        totals = metrics.values("mirror-link", **of_flow)
        assert (totals["partitions"], totals["quarantined_partitions"], totals["in_flight_bytes"]) == (
            2,
            0,
            0,
        )
        await link.progress.ask_source()
        assert metrics.values("mirror-link", **of_flow)["rpo-seconds"] == 0
        assert totals["partition_in_flight_bytes_max"] * 2 == totals["in_flight_bytes_max"]
        assert metrics.values("consumer-fetch-manager-metrics")["records-consumed-total"] >= 85
        check_documented(
            metrics, "MirrorSourceConnector", "mirror-partition", "mirror-link", "mirror-placing"
        )
        assert metrics.values("mirror-placing", **of_flow) == {
            "waiting": 0,
            "running": 0,
            "running_max": AT_A_TIME,
        }
        assert b"kafka_connect_mirror_mirrorsourceconnector_record_count{" in exposition(metrics)
        samples = [name for name, _ in metrics.read()]
        assert len(set(samples)) == len(samples), "those of one client are told from the other's"
    assert not list(metrics.read()), "it is closed"


async def test_latency_of_checkpoints(pair: Pair, new_name: Callable[[], str]) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Client(pair.dc1) as client:
        await Admin(client).alter_group_offsets(f"group-{topic}", {TopicPartition(topic, 0): 7})
    ticks = itertools.count(int(NOW))
    settings = pair.link(
        topic,
        emit_checkpoints_enabled="true",
        checkpoints_topic_replication_factor="1",
        groups=f"group-{topic}",
    )
    async with Link(settings, clock=lambda: float(next(ticks))) as link:
        await link.run(until_caught_up=True)
        tags = {"group": f"group-{topic}", "topic": f"dc1.{topic}", "partition": "0"}
        values = link.metrics.values("MirrorCheckpointConnector", source="dc1", target="dc2", **tags)
        assert values["checkpoint-latency-ms"] == values["checkpoint-latency-ms-max"] >= 1000
        check_documented(link.metrics, "MirrorCheckpointConnector")


async def test_the_rpo_of_a_flow_is_unknown_while_a_partition_is_not_copied(
    pair: Pair, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    await pair.create(topic)
    async with Link(pair.link(topic), clock=lambda: NOW) as link:
        assert link.rpo_seconds() == 0
        link._failed(NotPlaced(TopicPartition(topic, 0), "no leader"))
        assert link.rpo_seconds() is None
        assert math.isnan(link.metrics.values("mirror-link")["rpo-seconds"])


async def test_partitions_without_a_place_are_told_and_placed_few_at_a_time(
    pair: Pair, new_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the target is away, then it is slow. Each partition that waited had a task of its own."""
    topic, count = new_name(), 3 * AT_A_TIME
    async with Link(pair.link(topic)) as link:

        def values() -> Values:
            return link.metrics.values("mirror-placing")

        await pair.create(topic, count)
        with monkeypatch.context() as patched:
            patched.setattr(link._topics, "align", away)
            for _ in range(2):
                with pytest.raises(ConnectionClosed):
                    await link._refresh()
                assert (values()["waiting"], values()["running"]) == (count, 0)
        answered, position = asyncio.Event(), link._placing._position

        async def slowly(*facts: Any) -> Any:
            await answered.wait()
            return await position(*facts)

        monkeypatch.setattr(link._placing, "_position", slowly)
        tasks = len(asyncio.all_tasks())
        refreshing = asyncio.create_task(link._refresh())
        await until(lambda: values()["running"] == AT_A_TIME)
        assert values()["waiting"] == count
        assert len(asyncio.all_tasks()) <= tasks + AT_A_TIME + 1
        answered.set()
        await refreshing
        assert (values()["waiting"], values()["running"]) == (0, 0)
        assert link.metrics.values("mirror-link")["partitions"] == count


async def away(*_: Any) -> NoReturn:
    raise ConnectionClosed("the target is away")


def test_ends_that_have_to_be_asked_for_one_by_one_are_asked_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_positions, "REQUESTS_AT_A_TIME", 5)
    concurrent: list[int] = []

    class Admin:
        under_way = 0

        async def list_offsets(self, specs: dict[TopicPartition, str], **_: str) -> dict[Any, ListedOffset]:
            self.under_way += 1
            concurrent.append(self.under_way)
            try:
                await asyncio.sleep(0)
                if TopicPartition("t", 7) in specs:
                    raise ConnectionClosed("its leader is away")
                return {tp: ListedOffset(tp.partition) for tp in specs}
            finally:
                self.under_way -= 1

    tps = [TopicPartition("t", number) for number in range(100)]
    ends = asyncio.run(start_positions._ends_of_each(Admin(), tps, "read_committed"))  # type: ignore[arg-type]
    assert isinstance(ends.pop(tps.pop(7)), ConnectionClosed)
    assert ends == {tp: start_positions.LogEnds(tp.partition, tp.partition) for tp in tps}
    assert max(concurrent) == 5
