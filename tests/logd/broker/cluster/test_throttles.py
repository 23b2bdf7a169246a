"""Throttled replication of a reassignment (KIP-73). The quotas' clocks stand still, so that no quota
recovers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_client import Admin, BatchProducer, Client, NewTopic, ResourceType
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import ApiKey
from logd.broker.cluster.replication.replication_quota import ReplicationQuota
from logd.config.setting import LONG_MAX
from tests.logd.broker.cluster.brokers import Brokers
from tests.support import depth

TP = TopicPartition("t", 0)
LEADER, NEW = 1, 2
COUNT = 40
FETCHES = 5
"""The number of further fetches of a follower that shows that it is throttled."""


def test_the_rate_is_over_the_last_seconds() -> None:
    time, limit = 0.0, 100
    quota = ReplicationQuota(1, lambda: limit, lambda: time)
    assert (quota.is_set, quota.is_exceeded) == (True, False)
    quota.record(100)
    assert (quota.rate, quota.is_exceeded) == (100, False)
    quota.record(1)
    assert quota.is_exceeded
    time = 2.0
    assert (quota.rate, quota.is_exceeded) == (50.5, False)
    quota.record(200)
    assert quota.is_exceeded
    time = 11.0
    assert quota.rate == pytest.approx(200 / 9), "what is older than 11 windows counts no more"
    limit = LONG_MAX
    assert (quota.is_set, quota.is_exceeded) == (False, False)


@pytest.mark.parametrize(
    ("throttled", "covered"),
    [((), set()), (("*",), {0, 1, 2}), (("0:1", "1:2", "2:1"), {0, 2}), (("1:11",), set())],
)
def test_which_replicas_are_throttled(throttled: tuple[str, ...], covered: set[int]) -> None:
    quota = ReplicationQuota(1, lambda: 0, lambda: 0.0)
    assert {index for index in range(3) if quota.covers(throttled, index)} == covered


@asynccontextmanager
async def moving(
    zookeeper: str, folder: Path, rate: str, replicas: Mapping[str, str]
) -> AsyncIterator[tuple[Brokers, Admin]]:
    """Start moving a partition to a new replica: the leader has more batches than one fetch returns."""
    async with Brokers(zookeeper, folder, 2, replica_fetch_max_bytes="2000") as brokers:
        for each in brokers.up.values():
            leading, membership = each.broker.leading, each.broker.membership
            assert leading is not None and leading.quota is not None and membership is not None
            leading.quota._now = membership.follower_quota._now = lambda: 0.0
        async with Client(brokers.bootstrap) as client, BatchProducer(client, linger_ms=0) as producer:
            admin = Admin(client)
            await admin.create_topics([NewTopic("t", assignments={0: [LEADER]}, configs=replicas)])
            for n in range(COUNT):
                await (await producer.send("t", 0, [(n, None, bytes(1000), ())]))
            for broker in (LEADER, NEW):
                await admin.incremental_alter_configs(str(broker), {rate: "1000"}, ResourceType.BROKER)
            await brokers.until(lambda: all(rate_of(brokers, id_, rate) == 1000 for id_ in (LEADER, NEW)))
            await admin.alter_partition_reassignments({TP: [LEADER, NEW]})
            await brokers.until(lambda: NEW in brokers.replicas(TP))
            yield brokers, admin


def rate_of(brokers: Brokers, id_: int, rate: str) -> int:
    value: int = getattr(brokers.up[id_].broker.config, rate.replace(".", "_"))
    return value


async def is_held_back(brokers: Brokers) -> None:
    copy, served = brokers.replicas(TP)[NEW], brokers.up[LEADER].broker.requests_served
    await brokers.until(lambda: copy.log_end_offset > 0)
    end, fetches = copy.log_end_offset, served[ApiKey.FETCH]
    assert end < COUNT
    await brokers.until(lambda: served[ApiKey.FETCH] >= fetches + FETCHES)
    assert copy.log_end_offset == end


async def ends(brokers: Brokers, admin: Admin, rate: str) -> None:
    for broker in (LEADER, NEW):
        await admin.incremental_alter_configs(str(broker), {rate: None}, ResourceType.BROKER)
    await brokers.until(lambda: len(getattr(brokers.state(TP), "isr", ())) == 2)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


@depth.sample(1)
@pytest.mark.parametrize("throttled", ["0:1", "*"])
async def test_a_leader_gives_less(zookeeper: str, tmp_path: Path, throttled: str) -> None:
    rate = "leader.replication.throttled.rate"
    replicas = {"leader.replication.throttled.replicas": throttled}
    async with moving(zookeeper, tmp_path, rate, replicas) as (brokers, admin):
        await is_held_back(brokers)
        assert brokers.up[LEADER].broker.metrics.values("LeaderReplication")["byte-rate"] > 1000
        await ends(brokers, admin, rate)


async def test_a_follower_asks_for_less(zookeeper: str, tmp_path: Path) -> None:
    rate = "follower.replication.throttled.rate"
    replicas = {"follower.replication.throttled.replicas": f"0:{NEW}"}
    async with moving(zookeeper, tmp_path, rate, replicas) as (brokers, admin):
        metrics = brokers.up[NEW].broker.metrics
        await brokers.until(lambda: metrics.values("FollowerReplication")["byte-rate"] > 1000)
        membership = brokers.up[NEW].broker.membership
        assert membership is not None and membership._assignment is not None
        fetcher = membership._assignment.fetchers._by_leader[LEADER]
        await brokers.until(lambda: fetcher.statistics() == {"partitions": 1, "fetched": 0})
        assert 0 < brokers.replicas(TP)[NEW].log_end_offset < COUNT
        await ends(brokers, admin, rate)


@depth.deep
@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_who_is_in_sync_is_not_held_back(zookeeper: str, tmp_path: Path, side: str) -> None:
    rate = f"{side}.replication.throttled.rate"
    async with moving(zookeeper, tmp_path, rate, {}) as (brokers, admin):
        await brokers.until(lambda: len(getattr(brokers.state(TP), "isr", ())) == 2)
        await admin.incremental_alter_configs("t", {f"{side}.replication.throttled.replicas": "*"})
        async with Client(brokers.bootstrap) as client, BatchProducer(client, acks=-1) as producer:
            for n in range(COUNT):
                await (await producer.send("t", 0, [(n, None, bytes(1000), ())]))
        name = f"{side.capitalize()}Replication"
        rates = [each.broker.metrics.values(name)["byte-rate"] for each in brokers.up.values()]
        assert max(rates) > 1000
        assert len(getattr(brokers.state(TP), "isr", ())) == 2
