"""Partitions on the command line: `TOPIC`, `TOPIC:0` or `TOPIC:0,1`."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_client.topic_partition import TopicPartition
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, UsageError


def parse_partitions(text: str) -> tuple[str, list[int] | None]:
    """Return the topic and its partitions (None: all). Raises UsageError for malformed text."""
    topic, colon, listed = text.rpartition(":") if ":" in text else (text, "", "")
    if not topic:
        raise UsageError(f"{text!r} names no topic: give TOPIC or TOPIC:PARTITION,PARTITION")
    if not colon:
        return topic, None
    try:
        return topic, [int(each) for each in listed.split(",")]
    except ValueError:
        raise UsageError(f"{text!r}: after the colon come partitions' numbers, such as 0,1") from None


async def find_partitions(session: Session, texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions that the texts name. Raises NotFound if one does not exist."""
    requested = [parse_partitions(text) for text in texts]
    metadata = await session.client.metadata([topic for topic, _ in requested], refresh=True)
    tps: dict[TopicPartition, None] = {}
    for topic, listed in requested:
        existing = sorted(metadata.topics[topic].partitions)
        for index in existing if listed is None else listed:
            if index not in metadata.topics[topic].partitions:
                raise NotFound(f"topic {topic!r} has no partition {index}: it has 0 to {existing[-1]}")
            tps[TopicPartition(topic, index)] = None
    return list(tps)
