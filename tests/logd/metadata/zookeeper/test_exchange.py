"""Kafka 3's own client of ZooKeeper reads what our brokers write, and writes what they load."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from kafka_client.topic_partition import TopicPartition
from logd.metadata.zookeeper.cluster import cluster_id, prepare
from logd.metadata.zookeeper.election import elect, resign
from logd.metadata.zookeeper.errors import ControllerMoved
from logd.metadata.zookeeper.registration import register
from logd.metadata.zookeeper.store import ZooKeeperStore
from logd.metadata.zookeeper.znodes import paths, znodes
from logd.metadata.zookeeper.znodes.znodes import Endpoint, Registration
from tests.logd.metadata.zookeeper.sessions import opened, wait_until_gone
from tests.logd.metadata.zookeeper.test_store import ID, configs, partition, producer_ids, topic
from tests.support import java

pytestmark = pytest.mark.skipif(
    not (java.LIBS_3 and shutil.which("javac")),
    reason=f"{java.NEEDS}: KAFKA_3_LIBS of Kafka 3's jars, or no javac",
)
BROKER = Registration(
    endpoints=(Endpoint("INSIDE", "h", 9092, "PLAINTEXT"), Endpoint("OUTSIDE", "::1", 9093, "SSL")), rack="r"
)
READ = """\
cluster abcdefghijklmnopqrstuv
controller 1
epoch 1
brokers [1 : (EndPoint(h,9092,ListenerName(INSIDE),PLAINTEXT),\
EndPoint(::1,9093,ListenerName(OUTSIDE),SSL)) : r : Features{}]
deletions []
topic ours AQIDBAUGBwgJCgsMDQ4PEA {retention.ms=1}
ours-0 ReplicaAssignment(replicas=1,2, addingReplicas=, removingReplicas=) leader 1 epoch 0 \
isr List(1, 2) version 0 controller 1
ours-1 ReplicaAssignment(replicas=1,2,3, addingReplicas=3, removingReplicas=1) leader 2 epoch 4 \
isr List(2) version 1 controller 1
broker-default {log.cleaner.threads=3}
"""


def exchange(mode: str, connect: str) -> str:
    return java.run_program("ZooKeeperExchange", mode, connect, libs=java.LIBS_3)


async def test_kafka_reads_what_we_write(connect: str) -> None:
    async with opened(connect) as session:
        await prepare(session)
        await cluster_id(session, lambda: "abcdefghijklmnopqrstuv")
        await register(session, 1, BROKER, 0)
        elected = await elect(session, 1, 0)
        assert elected is not None
        store = ZooKeeperStore(session, elected)
        await store.load()
        first = [partition(index, name="ours") for index in range(2)]
        await store.write([topic("ours", 2, ID, **{"retention.ms": "1"}), *first])
        moved = {"replicas": [1, 2, 3], "adding": [3], "removing": [1], "isr": [2], "leader": 2}
        await store.write([partition(1, 1, name="ours", leader_epoch=4, **moved)])
        await store.write([configs("", **{"log.cleaner.threads": "3"})])
        assert await asyncio.to_thread(exchange, "read", connect) == READ


async def test_we_read_what_kafka_writes(connect: str) -> None:
    async with opened(connect) as session:
        await prepare(session)
        ours = await elect(session, 1, 0)
        assert ours is not None
        store = ZooKeeperStore(session, ours)
        await store.load()
        await resign(session, ours)
        assert await asyncio.to_thread(exchange, "write", connect) == "2 2\n", "epoch and version"
        with pytest.raises(ControllerMoved):
            await store.write([producer_ids(1000)])
        await wait_until_gone(session, paths.CONTROLLER)
        ours = await elect(session, 1, 0)
        assert ours is not None
        assert ours.epoch == 3
        loaded = await ZooKeeperStore(session, ours).load()
        topic_id = bytes.fromhex(loaded[0]["id"])
        theirs = {"name": "theirs", "replicas": [9, 8], "isr": [9, 8], "leader": 8, "leader_epoch": 1}
        unwritten = {"leader": -1, "leader_epoch": -1, "partition_epoch": -1}
        assert loaded == [
            topic("theirs", 2, topic_id, **{"retention.ms": "5"}),
            partition(0, 1, **theirs),
            partition(1, name="theirs", replicas=[8, 9], isr=[8, 9]) | unwritten,
            configs("", **{"log.cleaner.threads": "2"}),
            producer_ids(0),
        ]
        first = TopicPartition("theirs", 0)
        assert await session.find_children(paths.DELETE_TOPICS) == ["theirs"]
        reassignments, _ = await session.get(paths.REASSIGN_PARTITIONS)
        assert znodes.decode_reassignments(reassignments) == {first: (7,)}
        path = paths.PREFERRED_REPLICA_ELECTION
        assert znodes.decode_partitions(path, (await session.get(path))[0]) == {first}
        (notification,) = await session.find_children(paths.CONFIG_CHANGES)
        path = f"{paths.CONFIG_CHANGES}/{notification}"
        changed = znodes.decode_config_change(path, (await session.get(path))[0])
        assert changed == "brokers/<default>"
