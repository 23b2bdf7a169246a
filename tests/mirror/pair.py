"""Two clusters, `dc1` and `dc2`: links between them, and records to copy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.records import NewRecord
from mirror.config import LinkSettings, parse_links
from mirror.link import Link
from mirror.verify import TopicComparison, verify_topic


@dataclass(frozen=True)
class Pair:
    """Where two clusters are, and the properties of links between them."""

    dc1: str
    dc2: str

    def properties(self, topics: str, **others: str) -> dict[str, str]:
        return {
            "clusters": "dc1, dc2",
            "dc1.bootstrap.servers": self.dc1,
            "dc2.bootstrap.servers": self.dc2,
            "dc1->dc2.enabled": "true",
            "dc1->dc2.topics": topics,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "emit.checkpoints.enabled": "false",
            "emit.heartbeats.enabled": "false",
            **{key.replace("_", "."): value for key, value in others.items()},
        }

    def link(self, topics: str, **others: str) -> LinkSettings:
        (settings,) = parse_links(self.properties(topics, **others))
        return settings

    async def copy(self, topics: str, **others: str) -> int:
        """Run a link until it has caught up; how many records it copied."""
        async with Link(self.link(topics, **others)) as link:
            await link.run(until_caught_up=True)
            return sum(status.records for status in link.status().values())

    async def verify(self, topic: str) -> TopicComparison:
        async with Client(self.dc1) as dc1, Client(self.dc2) as dc2:
            return await verify_topic(dc1, dc2, topic, f"dc1.{topic}")

    async def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        async with Client(self.dc1) as client:
            settings = {key.replace("_", "."): value for key, value in configs.items()}
            await Admin(client).create_topics([NewTopic(topic, partitions, 1, settings)])


def start_mirror(config: Path, *options: str) -> subprocess.Popen[bytes]:
    """Its output goes to `mirror.log` beside the properties."""
    with config.with_name("mirror.log").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-c", "from mirror.cli import app; app()", "run", str(config), *options],
            stdout=output,
            stderr=output,
        )


async def produce(
    bootstrap: str, topic: str, batches: dict[int, Sequence[Sequence[NewRecord]]], **options: Any
) -> None:
    """Send each list of records as a batch of its own."""
    async with Client(bootstrap) as client, BatchProducer(client, linger_ms=0, **options) as producer:
        futures = []
        for partition, parts in batches.items():
            for records in parts:
                futures.append(await producer.send(topic, partition, records))
                await producer.flush()
        for future in futures:
            await future


def numbered(count: int, start: int = 0, **changes: bytes) -> list[NewRecord]:
    """Records that tell each other apart."""
    return [
        (
            1_357_000_000_000 + i,
            b"key-%d" % (i % 7),
            changes.get("value", b"value-%d" % i),
            (("h", b"%d" % i),),
        )
        for i in range(start, start + count)
    ]


async def target_ends(pair: Pair, topic: str) -> dict[int, int]:
    async with Client(pair.dc2) as client:
        metadata = await client.metadata([f"dc1.{topic}"], allow_missing=True)
        tps = metadata.partitions([f"dc1.{topic}"])
        if not tps:
            return {}
        listed = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
        return {tp.partition: end.offset for tp, end in listed.items()}
