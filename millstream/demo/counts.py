"""The progress of each part, read from the logs and from the tables' manifests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kafka_client import Admin, Client, TopicPartition
from kafka_client.errors import MillstreamError
from millstream.demo.layout import AIRLINES, DELAYS, FLIGHTS, MIRRORED, Layout
from plugins.spark.table import ParquetTable


@dataclass(slots=True)
class StreamsStatus:
    """The last status of the streams application, summed over its restarts."""

    records_in: int = 0
    records_out: int = 0
    dropped: int = 0
    lag: int = -1
    """The number of records not yet committed; -1 before the first report."""


@dataclass(slots=True)
class Counts:
    """Records by topic (end offsets summed over partitions) and rows by table."""

    dc1: dict[str, int] = field(default_factory=dict)
    dc2: dict[str, int] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)

    def mirrored(self) -> bool:
        """Return True if dc2 has as many records of each mirrored topic as dc1."""
        return all(self.dc1.get(topic, -1) == self.dc2.get(f"dc1.{topic}", 0) for topic in MIRRORED)

    def sunk(self) -> bool:
        """Return True if the tables have every record."""
        return all(self.dc1.get(topic, -1) == self.tables.get(topic, 0) for topic in MIRRORED)


class Counter:
    """A reader of the counts, used as a context manager.

    Counts of an unreachable broker stay as they were.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._clients = (
            Client(layout.dc1, client_id="demo"),
            Client(layout.dc2, client_id="demo"),
        )
        self.counts = Counts()

    async def __aenter__(self) -> Counter:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for client in self._clients:
            await client.close()

    async def take(self) -> Counts:
        """Read all counts."""
        sources = (
            (self._clients[0], self.counts.dc1, (FLIGHTS, AIRLINES, DELAYS)),
            (self._clients[1], self.counts.dc2, tuple(f"dc1.{topic}" for topic in MIRRORED)),
        )
        for client, ends, topics in sources:
            try:
                ends.update(await topic_ends(client, topics))
            except (MillstreamError, OSError):
                continue
        for topic in MIRRORED:
            latest = ParquetTable(self._layout.table(topic)).latest()
            if latest is not None:
                self.counts.tables[topic] = latest.rows
        return self.counts


async def topic_ends(client: Client, topics: Iterable[str]) -> dict[str, int]:
    """Return the number of records of each topic that exists."""
    admin = Admin(client, timeout_ms=5000)
    existing = await admin.list_topics()
    partitions = {
        topic: [TopicPartition(topic, number) for number in existing[topic].partitions]
        for topic in topics
        if topic in existing
    }
    if not partitions:
        return {}
    ends = await admin.list_offsets(
        dict.fromkeys((tp for tps in partitions.values() for tp in tps), "latest")
    )
    return {topic: sum(ends[tp].offset for tp in tps) for topic, tps in partitions.items()}
