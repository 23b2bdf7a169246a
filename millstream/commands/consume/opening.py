"""Opening the source of a read: partitions read alone or as a group member, and where they begin and end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kafka_client import Consumer, IsolationLevel, TopicPartition
from kafka_client.properties import ClientProperties
from millstream.commands.consume.positions import (
    Start,
    end_offsets,
    find_topics,
    offsets_at,
    select_partitions,
    starting_offsets,
)
from millstream.commands.consume.source import GroupSource, Source
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """The topics and partitions to read, and the range.

    `until_ms`: end before this time; `to_end`: end at the current end of the partitions.
    """

    topics: list[str]
    include: re.Pattern[str] | None
    partitions: list[int]
    start: Start | None
    until_ms: int | None
    to_end: bool
    isolation: IsolationLevel


async def open_source(session: Session, requested: ReadRequest, group: str | None) -> Source:
    """Open a source, which the caller closes.

    Raises NotFound if a topic or partition does not exist, and UsageError for options that do not go with a
    group.
    """
    return await (_alone(session, requested) if group is None else _member(session, requested, group))


async def _alone(session: Session, requested: ReadRequest) -> Source:
    """Open a source without a group. It begins where the options say, by default at the end."""
    admin, isolation = session.admin, requested.isolation
    topics = await find_topics(session.client, requested.topics, requested.include)
    existing = (await session.client.metadata(topics)).partitions(topics)
    tps = select_partitions(existing, requested.partitions)
    bounded = requested.to_end or requested.until_ms is not None
    start = requested.start or Start("earliest" if bounded else "latest")
    positions = await starting_offsets(admin, tps, start, isolation)
    ends: dict[TopicPartition, int] | None = None
    if requested.until_ms is not None:
        ends = await offsets_at(admin, tps, requested.until_ms, isolation)
    elif requested.to_end:
        ends = await end_offsets(admin, tps, isolation)
    if ends is not None:
        # A partition whose end is not after its start is not read at all.
        positions = {tp: offset for tp, offset in positions.items() if offset < ends[tp]}
        ends = {tp: ends[tp] for tp in positions}
    # An offset set by --offset must exist. Otherwise records that retention deletes meanwhile are skipped.
    reset = "none" if start.kind == "offset" else "earliest"
    consumer = Consumer(session.client, **_settings(session, requested, reset))
    await consumer.assign(positions)
    return Source(consumer, ends)


async def _member(session: Session, requested: ReadRequest, group: str) -> Source:
    """Join the group.

    Partitions without a committed offset begin at the end, or at the beginning with `to_end`.
    """
    kind = requested.start.kind if requested.start else "earliest" if requested.to_end else "latest"
    if kind not in ("earliest", "latest") or requested.partitions or requested.until_ms is not None:
        raise UsageError(
            "with --group the group's own offsets and shares are read: leave --offset N, --last, --since, "
            "--until and --partition out"
        )
    if requested.include is None:
        await find_topics(session.client, requested.topics, None)
    consumer = Consumer(session.client, group, **_settings(session, requested, kind))
    source = GroupSource(consumer, session.admin, to_end=requested.to_end, isolation=requested.isolation)
    try:
        return await source.join(requested.include or requested.topics)
    except BaseException:
        await source.close()
        raise


def _settings(session: Session, requested: ReadRequest, reset: str) -> dict[str, Any]:
    """Return the consumer settings of --command-config, with those of the options on top."""
    properties = ClientProperties.layered(session.servers.properties, "").consumer()
    return {**properties, "isolation_level": requested.isolation, "auto_offset_reset": reset}
