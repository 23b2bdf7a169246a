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
    """Those named; all of all topics but internal ones, if none is."""
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
    """Where each partition's log begins and where the next record goes."""
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
    """Each partition's offset of a time; None where no record is that young."""
    found = await session.admin.list_offsets(dict.fromkeys(tps, _spec(time)))
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": found[tp].offset if found[tp].offset >= 0 else None,
            "timestamp": found[tp].timestamp if found[tp].timestamp >= 0 else None,
        }
        for tp in tps
    ]


def _spec(time: str) -> OffsetSpec:
    """Kafka's words and numbers (-1 latest, -2 earliest, -3 of the highest timestamp), or a time."""
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
