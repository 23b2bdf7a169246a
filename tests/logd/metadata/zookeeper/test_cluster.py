"""Tests of the cluster's id, producer ids, requests that tools make by znodes, and the groups of old
consumers.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_client.topic_partition import TopicPartition
from logd.broker.cluster.controller.znode_requests import answered
from logd.metadata.zookeeper.cluster import cluster_id, next_producer_ids
from logd.metadata.zookeeper.election import elect
from logd.metadata.zookeeper.errors import BadZnode, ControllerMoved
from logd.metadata.zookeeper.old_consumers import OldGroup, OldMember, old_groups, read_old_group
from logd.metadata.zookeeper.znodes import paths, znodes
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.proxy import CREATE, SET, Proxy
from tests.logd.metadata.zookeeper.sessions import opened, through

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


async def test_a_cluster_has_one_id(connect: str, ensemble: Ensemble) -> None:
    async with Proxy(ensemble.connect_string) as proxy, opened(through(proxy, connect)) as session:
        ids = (f"id-{number}" for number in range(100))
        ids_found = await asyncio.gather(*(cluster_id(session, lambda: next(ids)) for _ in range(5)))
        assert len(set(ids_found)) == 1
        assert await cluster_id(session, lambda: "other") == ids_found[0]
        await session.delete(paths.CLUSTER_ID)
        proxy.lose(CREATE, before=False)
        assert await cluster_id(session, lambda: "x" * 64) == "x" * 64
        assert proxy.has_lost


async def test_producer_ids_are_given_once(connect: str, ensemble: Ensemble) -> None:
    async with Proxy(ensemble.connect_string) as proxy, opened(through(proxy, connect)) as session:
        blocks = await asyncio.gather(*(next_producer_ids(session, broker) for broker in range(5)))
        assert sorted(block.start for block in blocks) == [0, 1000, 2000, 3000, 4000]
        assert all(block.end == block.start + 999 for block in blocks)
        proxy.lose(SET, before=False)
        assert (await next_producer_ids(session, 7)).start == 6000, "the lost block is nobody's"
        assert znodes.decode_producer_ids((await session.get(paths.PRODUCER_ID_BLOCK))[0]) == (
            7,
            6000,
            6999,
        )


async def test_what_tools_asked_for_is_taken_away_by_the_controller(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        await session.ensure([paths.deletion("t"), paths.REASSIGN_PARTITIONS])
        elected = await elect(session, 1, 0)
        assert elected is not None
        for _ in range(2):
            await answered(session, elected, paths.deletion("t"))
        assert await session.find_children(paths.DELETE_TOPICS) == []
        await session.delete(paths.CONTROLLER)
        assert await elect(other, 2, 0) is not None
        with pytest.raises(ControllerMoved):
            await answered(session, elected, paths.REASSIGN_PARTITIONS)


async def test_a_group_of_old_consumers(connect: str) -> None:
    """Groups of the high-level consumer of Kafka 0.8 are read as the consumer writes them."""
    async with opened(connect) as session:
        assert await old_groups(session) == []
        assert await read_old_group(session, "g") is None
        member, thread = "g_host-1416882434000-5b0bbe0c", "g_host-1416882434000-5b0bbe0c-0"
        subscribed = b'{"version":1,"subscription":{"t":2},"pattern":"static","timestamp":"1416882434000"}'
        await session.ensure(["/consumers/g/ids", "/consumers/g/owners/t", "/consumers/g/offsets/t"])
        await session.create(f"/consumers/g/ids/{member}", subscribed, ephemeral=True)
        await session.create("/consumers/g/ids/later", b"?", ephemeral=True)
        for index, offset in ((1, b"42"), (10, b"7"), (2, b"0")):
            await session.create(f"/consumers/g/offsets/t/{index}", offset)
            await session.create(f"/consumers/g/owners/t/{index}", thread.encode(), ephemeral=True)
        await session.ensure(["/consumers/left/offsets/t/0"])
        assert await old_groups(session) == ["g", "left"]
        partitions = [TopicPartition("t", index) for index in (1, 2, 10)]
        assert await read_old_group(session, "g") == OldGroup(
            "g",
            {member: OldMember({"t": 2}, "static"), "later": OldMember({})},
            dict.fromkeys(partitions, thread),
            dict(zip(partitions, (42, 0, 7), strict=True)),
        )
        with pytest.raises(BadZnode, match="left/offsets/t/0 is '': it must be a decimal number"):
            await read_old_group(session, "left")
        await session.ensure(["/consumers/empty"])
        assert await read_old_group(session, "empty") == OldGroup("empty", {}, {}, {})
