"""Partitions as they are written on the command line: `TOPIC`, `TOPIC:0` or `TOPIC:0,1`."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_client.topic_partition import TopicPartition
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, UsageError


def parse_partitions(text: str) -> tuple[str, list[int] | None]:
    """The topic, and the partitions named with it (None: all); UsageError for what is no such list."""
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
    """The partitions that the texts name, each of which is there; NotFound for one that is not."""
    wanted = [parse_partitions(text) for text in texts]
    known = await session.client.metadata([topic for topic, _ in wanted], refresh=True)
    found: dict[TopicPartition, None] = {}
    for topic, listed in wanted:
        there = sorted(known.topics[topic].partitions)
        for index in there if listed is None else listed:
            if index not in known.topics[topic].partitions:
                raise NotFound(f"topic {topic!r} has no partition {index}: it has 0 to {there[-1]}")
            found[TopicPartition(topic, index)] = None
    return list(found)
