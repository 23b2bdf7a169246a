"""From what is wanted to a source: partitions alone, or a group's member; and where they begin and end."""

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
class Wanted:
    """What to read. `until_ms`: end before this time; `to_end`: end where the partitions end now."""

    topics: list[str]
    include: re.Pattern[str] | None
    partitions: list[int]
    start: Start | None
    until_ms: int | None
    to_end: bool
    isolation: IsolationLevel


async def open_source(session: Session, wanted: Wanted, group: str | None) -> Source:
    """A source, to be closed; UsageError for what a group's member cannot be asked, NotFound."""
    return await (_alone(session, wanted) if group is None else _member(session, wanted, group))


async def _alone(session: Session, wanted: Wanted) -> Source:
    """Without a group: from where the options say, or the end."""
    admin, isolation = session.admin, wanted.isolation
    topics = await find_topics(session.client, wanted.topics, wanted.include)
    found = (await session.client.metadata(topics)).partitions(topics)
    tps = select_partitions(found, wanted.partitions)
    bounded = wanted.to_end or wanted.until_ms is not None
    start = wanted.start or Start("earliest" if bounded else "latest")
    positions = await starting_offsets(admin, tps, start, isolation)
    ends: dict[TopicPartition, int] | None = None
    if wanted.until_ms is not None:
        ends = await offsets_at(admin, tps, wanted.until_ms, isolation)
    elif wanted.to_end:
        ends = await end_offsets(admin, tps, isolation)
    if ends is not None:
        # What ends before it begins is not read at all.
        positions = {tp: offset for tp, offset in positions.items() if offset < ends[tp]}
        ends = {tp: ends[tp] for tp in positions}
    # An offset that was asked for has to be there; records that retention takes meanwhile are passed over.
    reset = "none" if start.kind == "offset" else "earliest"
    consumer = Consumer(session.client, **_settings(session, wanted, reset))
    await consumer.assign(positions)
    return Source(consumer, ends)


async def _member(session: Session, wanted: Wanted, group: str) -> Source:
    """As a group's member: from its offsets, and where it has none from the end, or the beginning."""
    kind = wanted.start.kind if wanted.start else "earliest" if wanted.to_end else "latest"
    if kind not in ("earliest", "latest") or wanted.partitions or wanted.until_ms is not None:
        raise UsageError(
            "with --group the group's own offsets and shares are read: leave --offset N, --last, --since, "
            "--until and --partition out"
        )
    if wanted.include is None:
        await find_topics(session.client, wanted.topics, None)
    consumer = Consumer(session.client, group, **_settings(session, wanted, kind))
    source = GroupSource(consumer, session.admin, to_end=wanted.to_end, isolation=wanted.isolation)
    try:
        return await source.join(wanted.include or wanted.topics)
    except BaseException:
        await source.close()
        raise


def _settings(session: Session, wanted: Wanted, reset: str) -> dict[str, Any]:
    """The consumer's keys of --command-config; what the options say is over them."""
    given = ClientProperties.layered(session.servers.properties, "").consumer()
    return {**given, "isolation_level": wanted.isolation, "auto_offset_reset": reset}
