"""Requests of operators and older tools to the controller, written as znodes as those tools write them."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic
from kafka_client.topic_partition import TopicPartition
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.znodes import paths
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.metadata.zookeeper.sessions import opened, wait_until_gone
from tests.support.depth import deep

T0 = TopicPartition("t", 0)


async def _create(brokers: Brokers, name: str, *replicas: int) -> None:
    """Create a topic of one partition on these brokers and wait until all of them are in sync."""
    async with Client(brokers.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(name, -1, -1, {}, {0: list(replicas)})])
    await _led(brokers, TopicPartition(name, 0), replicas[0], *replicas)


async def _led(brokers: Brokers, tp: TopicPartition, leader: int, *replicas: int) -> None:
    def holds() -> bool:
        state = brokers.state(tp)
        return state is not None and state.leader == leader and set(state.isr) == set(replicas)

    await brokers.until(holds)


def _knows(brokers: Brokers, name: str) -> bool:
    return any(name in each.broker.catalog.topics for each in brokers.up.values())


async def _want_deletion(session: Session, name: str) -> None:
    """Request a topic's deletion as TopicCommand did: by a persistent znode without a value."""
    await session.create(paths.deletion(name))


def test_topics_are_deleted(zookeeper: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "logd.cluster")

    async def test() -> None:
        async with opened(zookeeper) as session:
            async with Brokers(zookeeper, tmp_path, 2) as brokers:
                for name in ("t", "late", "stays"):
                    await _create(brokers, name, 1, 2)
                await _want_deletion(session, "t")
                await _want_deletion(session, "unknown")
                await brokers.until(lambda: not _knows(brokers, "t"))
                for name in ("t", "unknown"):
                    await wait_until_gone(session, paths.deletion(name))
                assert await session.exists(paths.topic("t")) is None
                await brokers.until(lambda: not [*tmp_path.glob("*/t-0")])
                await _create(brokers, "t", 2)
            await _want_deletion(session, "late")
            # A controller that ended in the midst of it has got so far.
            await session.delete(paths.state("late", 0))
            async with Brokers(zookeeper, tmp_path, 2) as brokers:
                await brokers.until(lambda: not _knows(brokers, "late"))
                await wait_until_gone(session, paths.deletion("late"))
                assert _knows(brokers, "stays")

    asyncio.run(test())
    text = caplog.text
    assert "topic t is deleted: ZooKeeper's /admin/delete_topics/t wanted it" in text
    assert "/admin/delete_topics/unknown is taken away: there is no such topic" in text


def test_topics_are_not_deleted_where_that_is_not_allowed(
    zookeeper: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with opened(zookeeper) as session:
            async with Brokers(zookeeper, tmp_path, 1, delete_topic_enable="false") as brokers:
                await _create(brokers, "t", 1)
                await _want_deletion(session, "t")
                await wait_until_gone(session, paths.deletion("t"))
                assert _knows(brokers, "t")

    asyncio.run(test())
    assert "/admin/delete_topics/t is taken away: topics are not deleted here: delete.topic.enable" in (
        caplog.text
    )


@deep
def test_preferred_leaders_are_elected_and_partitions_moved(
    zookeeper: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with opened(zookeeper) as session:
            settings = {"auto.leader.rebalance.enable": "false"}
            async with Brokers(zookeeper, tmp_path, 3, **settings) as brokers:
                await _create(brokers, "t", 1, 2)
                await brokers.stop(1)
                await _led(brokers, T0, 2, 2)
                await brokers.start(1)
                await _led(brokers, T0, 2, 1, 2)
                for value in (
                    b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":7}]}',
                    b"?",
                ):
                    await session.create(paths.PREFERRED_REPLICA_ELECTION, value)
                    await wait_until_gone(session, paths.PREFERRED_REPLICA_ELECTION)
                await _led(brokers, T0, 1, 1, 2)
                for value in (
                    b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,1]}]}',
                    b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[9]}]}',
                    b"",
                ):
                    await session.create(paths.REASSIGN_PARTITIONS, value)
                    await wait_until_gone(session, paths.REASSIGN_PARTITIONS)
                    state = brokers.controller.broker.image.partitions[T0]
                    assert (set(state.replicas), state.is_reassigning) == ({1, 3}, False)

    asyncio.run(test())
    text = caplog.text
    assert "/admin/preferred_replica_election, partition u-7: UNKNOWN_TOPIC_OR_PARTITION" in text
    assert (
        "nobody is elected, and the znode taken away: ZooKeeper's /admin/preferred_replica_election" in text
    )
    assert "/admin/reassign_partitions, partition t-0: INVALID_REPLICA_ASSIGNMENT" in text
    assert "nothing is moved, and the znode taken away: ZooKeeper's /admin/reassign_partitions is ''" in text
