"""The wall clock of a broker's machine leaps: no broker or replica becomes late by that."""

from __future__ import annotations

from pathlib import Path

from kafka_client import Admin, Client, NewTopic
from kafka_client.records import build_batch
from kafka_client.topic_partition import TopicPartition
from logd.broker.broker import wall_clock_ms
from tests.logd.broker.cluster.brokers import Brokers

TP = TopicPartition("t", 0)
HOUR_MS = 3_600_000


async def test_followers_stay_in_sync(zookeeper: str, tmp_path: Path) -> None:
    """Followers stay in sync when the wall clock leaps, although one has not fetched the last record."""
    async with Brokers(zookeeper, tmp_path, count=2) as brokers:
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic(TP.topic, 1, 2)])
        await brokers.until(lambda: (state := brokers.state(TP)) is not None and len(state.isr) == 2)
        state = brokers.state(TP)
        assert state is not None
        (follower,) = set(state.isr) - {state.leader}
        leading = brokers.up[state.leader].broker.leading
        membership = brokers.up[follower].broker.membership
        assert leading is not None and membership is not None and membership._assignment is not None
        partition, following = brokers.replicas(TP)[state.leader], brokers.replicas(TP)[follower]
        membership._assignment.unassign(following)
        for text in (b"perhaps by the fetch of before", b"not fetched"):
            batch = memoryview(build_batch([(0, None, text, ())]))
            partition.produce(batch, wall_clock_ms(), 1)
        brokers.wall_clock_ms = lambda: wall_clock_ms() + HOUR_MS
        await leading._tick()
        led = leading.led[TP].core
        assert led.maximal_isr == {1, 2} and led._in_sync.proposal is None
        brokers.wall_clock_ms = lambda: wall_clock_ms() - HOUR_MS
        await leading._tick()
        assert led._in_sync.proposal is None
        membership._assignment.assign(following, state)
        await brokers.until(lambda: partition.high_watermark == 2)
        assert brokers.state(TP) == state
