"""Log directories of cluster brokers that fail, or that are missing at a start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message
from kafka_client.wire.private.broker_report import BrokerReportResponse
from logd.broker.cluster.failed_log_dirs import FailedLogDirs
from tests.logd.broker.cluster.brokers import Brokers
from tests.support.depth import deep

PARTITIONS = 8
TPS = [TopicPartition("t", index) for index in range(PARTITIONS)]


@deep
@pytest.mark.parametrize("restarted", [False, True])
async def test_others_lead_what_was_in_a_folder_that_failed(
    zookeeper: str, tmp_path: Path, restarted: bool
) -> None:
    async with Brokers(zookeeper, tmp_path, count=2, folders=2) as brokers:
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("t", PARTITIONS, 2)])
            await brokers.until(lambda: _in_sync(brokers, TPS))
            async with BatchProducer(client, acks=-1) as producer:
                for tp in TPS:
                    await (await producer.send(tp.topic, tp.partition, [(1, None, b"1", ())]))
            broker = brokers.up[1].broker
            bad = Path(broker.directories[0].path)
            lost = {
                tp for tp, partition in broker.catalog.partitions.items() if partition.directory.path == bad
            }
            assert 0 < len(lost) < PARTITIONS
            if restarted:
                await brokers.stop(1)
                bad.rename(bad.with_name("elsewhere"))
                bad.touch()
                await brokers.start(1)
                broker = brokers.up[1].broker
            else:
                broker.directories[0]._health.fail("a test takes it away", OSError(5, "gone"))
            await brokers.until(lambda: _in_sync(brokers, set(TPS) - lost))
            await brokers.until(lambda: all(_led_by(brokers, tp, 2) for tp in lost))
            assert not lost & broker.catalog.partitions.keys()
            assert {tp for tp in TPS if broker.leading and tp in broker.leading.led}.isdisjoint(lost)
            async with BatchProducer(client, acks=-1) as producer:
                for tp in TPS:
                    await (await producer.send(tp.topic, tp.partition, [(2, None, b"2", ())]))
            await Admin(client).create_topics([NewTopic("new", 2, 2)])
            await brokers.until(lambda: len(brokers.replicas(TopicPartition("new", 0))) == 2)
        await brokers.stop(1)
        if restarted:
            bad.unlink()
            bad.with_name("elsewhere").rename(bad)
        await brokers.start(1)
        await brokers.until(lambda: _in_sync(brokers, TPS))
        assert all(replica.log_end_offset == 2 for tp in TPS for replica in brokers.replicas(tp).values())


def test_a_mistake_is_reported_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        is_asked = asyncio.Event()
        mistakes = [RuntimeError("a mistake")]

        async def ask(message: Message, *, lane: str = "") -> BrokerReportResponse:
            if mistakes:
                raise mistakes.pop()
            is_asked.set()
            return BrokerReportResponse()

        folders = FailedLogDirs(ask, own=lambda: (1, 1), failed=lambda: ["/gone"], lost=lambda: TPS)
        try:
            folders.report()
            async with asyncio.timeout(60):
                await is_asked.wait()
        finally:
            await folders.stop()

    asyncio.run(test())
    assert "unexpected RuntimeError('a mistake')" in caplog.text


def _in_sync(brokers: Brokers, tps: Iterable[TopicPartition]) -> bool:
    return all((state := brokers.state(tp)) is not None and set(state.isr) == {1, 2} for tp in tps)


def _led_by(brokers: Brokers, tp: TopicPartition, broker: int) -> bool:
    state = brokers.state(tp)
    return state is not None and state.leader == broker and state.isr == (broker,)
