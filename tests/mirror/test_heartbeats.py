"""Heartbeats travel from the source to the target."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from kafka_client import Admin, Client
from mirror.internal_topics import read_internal_topic
from mirror.link import Link
from mirror.records.heartbeat import Heartbeat, parse_heartbeat
from tests.mirror.pair import Pair

NewName = Callable[[], str]


async def test_heartbeats_arrive_in_the_target(pair: Pair, new_name: NewName) -> None:
    name = f"heartbeats-{new_name()}"
    settings = pair.link(
        new_name(),
        emit_heartbeats_enabled="true",
        heartbeats_topic_replication_factor="1",
        heartbeats_topic_name=name,
    )
    quick = replace(settings, emit_heartbeats_interval_seconds=0.05, refresh_topics_interval_seconds=0.05)
    async with Link(quick) as link, Client(pair.dc2) as dc2:
        running = asyncio.create_task(link.run())
        async with asyncio.timeout(60):
            while len(beats := await arrived(dc2, f"dc1.{name}")) < 2:
                await asyncio.wait([running], timeout=0.05)
        link.stop()
        await running
    assert {beat[:2] for beat in beats} == {("dc1", "dc2")}
    assert beats == sorted(beats)
    async with Client(pair.dc1) as dc1:
        assert (await dc1.topic(name)).partition_count == 1
        configs = await Admin(dc1).describe_configs(name)
        assert configs["cleanup.policy"].value == "compact"


async def arrived(client: Client, topic: str) -> list[Heartbeat]:
    if topic not in await Admin(client).list_topics():
        return []
    records = [record async for record in read_internal_topic(client, topic)]
    return [parse_heartbeat(r[2] or b"", r[3] or b"") for r in records]
