"""Offsets committed in the target: forward only, and never under a member."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from kafka_client import Admin, Client, Consumer, OffsetAndMetadata, TopicPartition
from mirror.checkpoints.group_offsets import commit_in_target, offsets_to_commit
from mirror.link import Link
from mirror.records.checkpoint import Checkpoint
from tests.mirror.checkpoints.test_emitter import commit
from tests.mirror.pair import Pair, numbered, produce

NewName = Callable[[], str]


def test_offsets_never_go_back() -> None:
    tps = [TopicPartition("a.t", partition) for partition in range(4)]
    checkpoints = {tp: Checkpoint("g", tp, 20, 10, "note") for tp in tps}
    current = {tps[0]: OffsetAndMetadata(9), tps[1]: OffsetAndMetadata(10), tps[2]: OffsetAndMetadata(11)}
    expected = OffsetAndMetadata(10, "note")
    assert offsets_to_commit(checkpoints, current) == {tps[0]: expected, tps[3]: expected}


async def test_a_group_with_members_is_left_alone(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    group, tp = f"group-{topic}", TopicPartition(topic, 0)
    await Pair(pair.dc2, pair.dc1).create(topic)
    checkpoints = {tp: Checkpoint(group, tp, 7, 5)}
    async with Client(pair.dc2) as client:
        admin = Admin(client)
        async with Consumer(client, group) as consumer:
            await consumer.subscribe([topic])
            await consumer.wait_assigned()
            await commit_in_target(admin, group, checkpoints)
            assert await admin.list_group_offsets(group) == {}
        await commit_in_target(admin, group, checkpoints)
        assert (await admin.list_group_offsets(group))[tp].offset == 5, "its members have left"


async def test_a_running_mirror_commits_for_groups(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    group = f"group-{topic}"
    settings = pair.link(topic, sync_group_offsets_enabled="true", groups=group)
    assert (settings.groups.sync_offsets, settings.groups.emit_checkpoints) == (True, False)
    often = replace(settings.groups, sync_offsets_interval_seconds=0.05)
    remote = TopicPartition(f"dc1.{topic}", 0)
    await commit(pair, group, {TopicPartition(topic, 0): 4})
    async with Link(replace(settings, groups=often)) as link, Client(pair.dc2) as client:
        running = asyncio.create_task(link.run())
        for source, target in ((4, 4), (9, 9), (2, 9)):
            await commit(pair, group, {TopicPartition(topic, 0): source})
            async with asyncio.timeout(60):
                while (await Admin(client).list_group_offsets(group)).get(remote) != (target, "", -1):
                    await asyncio.wait([running], timeout=0.02)
        link.stop()
        await running
