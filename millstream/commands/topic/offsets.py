"""Offsets of partitions, by time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kafka_client import OffsetSpec, TopicPartition
from millstream.terminal.output import Row
from millstream.terminal.partitions import find_partitions
from millstream.terminal.session import Session
from millstream.terminal.times import timestamp_ms


async def wanted_partitions(session: Session, names: Sequence[str] | None) -> list[TopicPartition]:
    """Return the named partitions, or those of all topics that are not internal."""
    if names:
        return await find_partitions(session, names)
    topics = await session.admin.list_topics()
    return [
        TopicPartition(name, partition)
        for name, topic in sorted(topics.items())
        if not topic.is_internal
        for partition in sorted(topic.partitions)
    ]


async def first_and_next(session: Session, tps: Sequence[TopicPartition]) -> list[Row]:
    """Return each partition's first offset and end offset."""
    earliest, latest = await asyncio.gather(
        session.admin.list_offsets(dict.fromkeys(tps, "earliest")),
        session.admin.list_offsets(dict.fromkeys(tps, "latest")),
    )
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "earliest": earliest[tp].offset,
            "latest": latest[tp].offset,
            "records": latest[tp].offset - earliest[tp].offset,
        }
        for tp in tps
    ]


async def at(session: Session, tps: Sequence[TopicPartition], time: str) -> list[Row]:
    """Return each partition's offset at a time; None if no record is that recent."""
    listed = await session.admin.list_offsets(dict.fromkeys(tps, _spec(time)))
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": listed[tp].offset if listed[tp].offset >= 0 else None,
            "timestamp": listed[tp].timestamp if listed[tp].timestamp >= 0 else None,
        }
        for tp in tps
    ]


def _spec(time: str) -> OffsetSpec:
    """Return an offset spec for Kafka's words, its numbers (-1, -2, -3) or a time."""
    named = {
        "earliest": "earliest",
        "latest": "latest",
        "max-timestamp": "max_timestamp",
        "-1": "latest",
        "-2": "earliest",
        "-3": "max_timestamp",
    }
    if time in named:
        return named[time]
    return int(time) if time.isdecimal() else timestamp_ms(time, "--time")
