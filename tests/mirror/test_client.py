"""MirrorClient beside Kafka's, over topics as MirrorMaker has them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator

import pytest

from kafka_client import Admin, Client, NewTopic, OffsetAndMetadata, TopicPartition
from kafka_client.errors import KafkaError
from mirror.client import MirrorClient, Offsets
from mirror.records.checkpoint import Checkpoint
from tests.mirror.pair import produce
from tests.support import java
from tests.support.logd_process import LogdProcess

TOPICS = [
    *("local", "heartbeats", "a.heartbeats", "b.a.heartbeats", "x.heartbeats.y", "a.orders", "b.a.orders"),
    *("a.checkpoints.internal", "b.checkpoints.internal", "mm2-offset-syncs.a.internal"),
]
ORDERS = [TopicPartition("a.orders", partition) for partition in range(2)]
CHECKPOINTS = [
    Checkpoint("billing", ORDERS[0], 10, 7),
    Checkpoint("billing", ORDERS[1], 4, 3, "note"),
    Checkpoint("shipping", ORDERS[0], 2, 1),
    Checkpoint("billing", ORDERS[0], 20, 15),
]
BILLING = {ORDERS[0]: OffsetAndMetadata(15), ORDERS[1]: OffsetAndMetadata(3, "note")}
SHIPPING = {ORDERS[0]: OffsetAndMetadata(1)}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LogdProcess(tmp_path_factory.mktemp("client")) as logd:
        asyncio.run(fill(logd.bootstrap))
        yield logd.bootstrap


async def fill(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(name, 1, 1) for name in TOPICS])
    records = [(5, each.record_key, each.record_value, ()) for each in CHECKPOINTS]
    await produce(bootstrap, "a.checkpoints.internal", {0: [records]})


async def test_checkpoints_are_read(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        mirror = MirrorClient(client)
        assert await mirror.remote_consumer_offsets("billing", "a") == BILLING
        assert await mirror.remote_consumer_offsets("unknown", "a") == {}
        assert await mirror.remote_consumer_offsets("billing", "b") == {}
        each = await mirror.remote_consumer_offsets_of(re.compile(".*ing"), "a")
        assert each == {"billing": BILLING, "shipping": SHIPPING}
        assert await mirror.remote_consumer_offsets_of(re.compile("bill|ship"), "a") == {}
        with pytest.raises(KafkaError):
            await mirror.remote_consumer_offsets("billing", "c")


async def test_topics_are_told_apart(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        mirror = MirrorClient(client)
        assert await mirror.heartbeat_topics() == {"heartbeats", "a.heartbeats", "b.a.heartbeats"}
        assert await mirror.checkpoint_topics() == {"a.checkpoints.internal", "b.checkpoints.internal"}
        assert await mirror.upstream_clusters() == {"a", "b"}
        assert await mirror.remote_topics("b") == {"b.a.orders", "b.a.heartbeats"}
        assert [await mirror.replication_hops(alias) for alias in ("a", "b", "x")] == [1, 1, -1]


@java.needs_jar("connect-mirror")
async def test_java_says_the_same(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        mirror = MirrorClient(client)
        hops = [await mirror.replication_hops(alias) for alias in ("a", "nowhere")]
        group = f"group {texts(await mirror.remote_consumer_offsets('billing', 'a'))}"
        matching = await mirror.remote_consumer_offsets_of(re.compile(".*ing"), "a")
        ours = [
            f"heartbeat_topics {joined(await mirror.heartbeat_topics())}",
            f"checkpoint_topics {joined(await mirror.checkpoint_topics())}",
            f"upstream_clusters {joined(await mirror.upstream_clusters())}",
            f"remote_topics {joined(await mirror.remote_topics())}",
            f"remote_topics a {joined(await mirror.remote_topics('a'))}",
            f"hops {hops[0]} {hops[1]}",
            group,
            *(f"matching {name} {texts(offsets)}" for name, offsets in sorted(matching.items())),
            group,
        ]
    answers = await asyncio.to_thread(java.run_program, "MirrorClients", bootstrap, "a", "billing", ".*ing")
    assert answers.splitlines() == ours


def texts(offsets: Offsets) -> str:
    return joined(f"{tp}={position.offset}{position.metadata}" for tp, position in offsets.items())


def joined(names: Iterable[str]) -> str:
    return ",".join(sorted(names))
