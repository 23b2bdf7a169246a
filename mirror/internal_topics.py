"""Creates and reads a flow's own topics: one partition, compacted, of a few records per key."""

from __future__ import annotations

from collections.abc import AsyncIterator

from kafka_client import Admin, BatchFetcher, Client, NewTopic, TopicPartition
from kafka_client.errors import KafkaError
from kafka_client.records import Record
from mirror.errors import with_setting


async def create_internal_topic(client: Client, topic: str, replication_factor: int, key: str) -> None:
    """Create the topic if it is missing. An error about the replication factor names its setting, `key`."""
    new = NewTopic(topic, 1, replication_factor, {"cleanup.policy": "compact"})
    try:
        await Admin(client).create_topics([new], exist_ok=True)
    except KafkaError as e:
        raise with_setting(e, key, replication_factor) from None


async def read_internal_topic(
    client: Client, topic: str, position: int | None = None
) -> AsyncIterator[Record]:
    """Yield the topic's records from `position` (default: the topic's start) to its end at the call.

    Raises KafkaError if the topic is missing.
    """
    tp, admin = TopicPartition(topic, 0), Admin(client)
    end = (await admin.list_offsets({tp: "latest"}))[tp].offset
    if position is None:
        position = (await admin.list_offsets({tp: "earliest"}))[tp].offset
    if position >= end:
        return
    async with BatchFetcher(client, auto_offset_reset="earliest") as fetcher:
        fetcher.add(tp, position)
        while position < end:
            for fetched in await fetcher.fetch():
                for part in fetched.parts():
                    for record in part.records:
                        yield record
                position = fetched.next_offset
