"""Checkpoints of groups between two brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from kafka_client import Admin, Client, TopicPartition, TransactionalProducer
from mirror.internal_topics import read_internal_topic
from mirror.link import Link
from mirror.records.checkpoint import Checkpoint, parse_checkpoint
from tests.mirror.pair import Pair, numbered, produce

NewName = Callable[[], str]

CHECKPOINTS = {
    "emit_checkpoints_enabled": "true",
    "checkpoints_topic_replication_factor": "1",
}


async def written(pair: Pair, *groups: str) -> list[Checkpoint]:
    """Return the checkpoints of the groups in the order of the topic."""
    async with Client(pair.dc2) as client:
        records = [record async for record in read_internal_topic(client, "dc1.checkpoints.internal")]
    checkpoints = [parse_checkpoint(r[2] or b"", r[3] or b"") for r in records]
    return [each for each in checkpoints if each.consumer_group_id in groups]


async def commit(pair: Pair, group: str, offsets: dict[TopicPartition, int]) -> None:
    async with Client(pair.dc1) as client:
        await Admin(client).alter_group_offsets(group, offsets)


async def test_groups_go_on_at_the_same_record(pair: Pair, new_name: NewName) -> None:
    """A transaction's marker makes the offsets differ: the source has it at 15, the target has none."""
    topic, other = new_name(), new_name()
    await pair.create(topic)
    await pair.create(other)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Client(pair.dc1) as client, TransactionalProducer(client, topic) as producer:
        producer.begin()
        await producer.send(topic, 0, numbered(5, 10))
        await producer.commit()
    await produce(pair.dc1, topic, {0: [numbered(10, 15), numbered(10, 25)]})
    tp, remote = TopicPartition(topic, 0), TopicPartition(f"dc1.{topic}", 0)
    groups = {f"{topic}-{offset}": offset for offset in (3, 16, 20, 36)}
    for group, offset in groups.items():
        await commit(pair, group, {tp: offset})
    others = f"{topic}-other", f"console-consumer-{topic}-1"
    await commit(pair, others[0], {TopicPartition(other, 0): 0})
    await commit(pair, others[1], {tp: 20})
    mine = {**CHECKPOINTS, "groups": f".*{topic}-.*"}
    await pair.copy(topic, **mine)
    first, *exact = sorted(await written(pair, *groups, *others), key=lambda each: each.upstream_offset)
    assert first.downstream_offset <= 3
    assert exact == [Checkpoint(group, remote, o, o - 1) for group, o in groups.items() if o > 3]
    await pair.copy(topic, **mine)
    assert len(await written(pair, *groups)) == len(groups), "a restart repeats none"


async def test_a_running_mirror_follows_groups(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    tp, group = TopicPartition(topic, 0), f"group-{topic}"
    settings = pair.link(topic, **CHECKPOINTS, groups=group)
    often = replace(settings.groups, emit_checkpoints_interval_seconds=0.05, refresh_interval_seconds=0.05)
    async with Link(replace(settings, groups=often)) as link:
        running = asyncio.create_task(link.run())
        for offset in (4, 9, 2):
            await commit(pair, group, {tp: offset})
            async with asyncio.timeout(60):
                while [c.downstream_offset for c in await written(pair, group)][-1:] != [offset]:
                    await asyncio.wait([running], timeout=0.02)
        link.stop()
        await running
