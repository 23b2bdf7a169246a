"""A synchronous client for tests, which runs Millstream's client in a thread with its own event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, OffsetSpec, TopicPartition
from kafka_client.records import NewRecord
from millstream.testing.records import ReadRecord, in_order

T = TypeVar("T")

GROUP, TRANSACTION = 0, 1
"""The kinds of coordinators, for `Client.coordinator`."""

TIMEOUT_MS = 30_000
MISSING_TOPIC_WAIT_MS = 200
"""The wait for a missing topic: short, so that a wrong topic name fails fast."""


class SyncClient:
    """A synchronous client. Each call opens a new connection, so nothing is cached between calls."""

    def __init__(self, bootstrap_servers: Callable[[], str]) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="millstream-client", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Callable[[Client], Awaitable[T]], *, creates_topics: bool = False) -> T:
        """Run `work` in the other thread and return its result. Raises its errors, or ConnectionClosed."""

        async def main() -> T:
            async with Client(
                self._bootstrap_servers(),
                client_id="millstream-testing",
                request_timeout_ms=TIMEOUT_MS,
                missing_topic_wait_ms=MISSING_TOPIC_WAIT_MS,
                allow_auto_topic_creation=creates_topics,
            ) as client:
                return await work(client)

        return asyncio.run_coroutine_threadsafe(main(), self._loop).result()


async def produce(
    client: Client, topic: str, records: Sequence[NewRecord], partition: int | None
) -> list[TopicPartition]:
    """Write records, partitioned by their keys unless `partition` is set. Return the partition of each."""
    count = (await client.topic(topic)).partition_count
    async with BatchProducer(client, linger_ms=0) as producer:
        places = [
            producer.partition_for(topic, record[1], count) if partition is None else partition
            for record in records
        ]
        parts: dict[int, list[NewRecord]] = defaultdict(list)
        for place, record in zip(places, records, strict=True):
            parts[place].append(record)
        acks = [await producer.send(topic, place, part) for place, part in parts.items()]
        await producer.flush()
        for ack in acks:
            ack.result()
    return [TopicPartition(topic, place) for place in places]


async def create_topic(
    client: Client, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    """Create a topic and wait until it has leaders."""
    await Admin(client).create_topics([NewTopic(name, partitions, replication_factor, configs)])


async def delete_topics(client: Client, names: Collection[str]) -> None:
    """Delete topics, internal ones too, and ignore missing ones."""
    await Admin(client).delete_topics(names, missing_ok=True)


async def read(client: Client, topic: str) -> list[ReadRecord]:
    """Return all committed records of a topic up to its current end."""
    tps = [TopicPartition(topic, partition) for partition in (await client.topic(topic)).partitions]
    starts = await Admin(client).list_offsets(dict.fromkeys(tps, "earliest"))
    return await _read_from(client, {tp: starts[tp].offset for tp in tps})


async def unread(client: Client, group: str, topics: Collection[str]) -> dict[TopicPartition, int]:
    """Return how many committed records a group has not read, by partition.

    The partitions are those with a committed offset, and all of `topics`. Transaction markers are not
    counted, as no consumer reads them.
    """
    admin = Admin(client)
    committed = await admin.list_group_offsets(group)
    tps = [tp for tp in committed if not topics or tp.topic in topics]
    positions: dict[TopicPartition, int] = {tp: committed[tp].offset for tp in tps}
    for topic in topics:
        tps_of_topic = [
            TopicPartition(topic, partition) for partition in (await client.topic(topic)).partitions
        ]
        new = [tp for tp in tps_of_topic if tp not in positions]
        starts = await admin.list_offsets(dict.fromkeys(new, "earliest"))
        positions.update((tp, starts[tp].offset) for tp in new)
    records = Counter(
        TopicPartition(record.topic, record.partition) for record in await _read_from(client, positions)
    )
    return {tp: records[tp] for tp in sorted(positions)}


async def _read_from(client: Client, positions: Mapping[TopicPartition, int]) -> list[ReadRecord]:
    latest: dict[TopicPartition, OffsetSpec] = dict.fromkeys(positions, "latest")
    ends = await Admin(client).list_offsets(latest, isolation_level="read_committed")
    left = {tp: ends[tp].offset for tp in positions if positions[tp] < ends[tp].offset}
    records: list[ReadRecord] = []
    async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
        fetcher.assign({tp: positions[tp] for tp in left})
        while left:
            for fetched in await fetcher.fetch():
                if (end := left.get(fetched.tp)) is None:
                    continue
                records += [
                    ReadRecord(*fetched.tp, offset, key, value, timestamp, headers)
                    for offset, timestamp, key, value, headers in fetched.records()
                    if offset < end
                ]
                if fetched.next_offset >= end:
                    del left[fetched.tp]
                    fetcher.remove(fetched.tp)
    return in_order(records)
