"""For tests of whole applications: a deadline for a case, topics, records, and the smallest topology."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kafka_client import Admin, BatchProducer, Client, NewTopic
from streams import KafkaStreams, StreamsBuilder, Topology

Case = Callable[[], Awaitable[None]]
NewName = Callable[[str], str]


def run(case: Case, seconds: float = 90) -> None:
    """Run it, with a deadline."""

    async def limited() -> None:
        async with asyncio.timeout(seconds):
            await case()

    asyncio.run(limited())


async def make_topics(bootstrap: str, **partitions: int) -> None:
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(name, count, 1) for name, count in partitions.items()])


async def produce(
    bootstrap: str, topic: str, *rows: tuple[bytes | None, bytes | None], partition: int = 0
) -> None:
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        await (await producer.send(topic, partition, [(7, key, value, ()) for key, value in rows]))


def copy(bootstrap: str, name: str, state_dir: Path, **settings: Any) -> KafkaStreams:
    """``<name>-in``, numbers, to ``<name>-out``."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").to(f"{name}-out", name="sink")
    topology = builder.build()
    return KafkaStreams(
        topology, application_id=name, bootstrap_servers=bootstrap, state_dir=str(state_dir), **settings
    )


def start(topology: Topology, bootstrap: str, name: str, state_dir: Path, **settings: Any) -> KafkaStreams:
    """Return an application that commits often."""
    return KafkaStreams(
        topology,
        application_id=name,
        bootstrap_servers=bootstrap,
        state_dir=str(state_dir),
        **{"poll_ms": 20, "commit_interval_ms": 20, **settings},
    )
