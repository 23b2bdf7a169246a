"""`group reset-offsets`: compute each partition's new offset, within the partition's log.

The targets are Kafka's: an offset, a time, a shift, or a file's lines. An offset outside the log becomes the
log's first or end offset. A time after the last record's becomes the end offset.
"""

from __future__ import annotations

import asyncio
import csv
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafka_client import OffsetAndMetadata, TopicPartition
from kafka_client.errors import MillstreamError
from kafka_client.java_properties import read_text
from millstream.terminal.output import Row
from millstream.terminal.partitions import find_partitions
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError
from millstream.terminal.times import duration_ms, timestamp_ms

INACTIVE = ("Empty", "Dead")
Committed = Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a reset; exactly one field is set."""

    earliest: bool = False
    latest: bool = False
    current: bool = False
    offset: int | None = None
    timestamp_ms: int | None = None
    shift: int | None = None
    file: Mapping[TopicPartition, int] | None = None

    @classmethod
    def of(
        cls,
        to_earliest: bool,
        to_latest: bool,
        to_current: bool,
        to_offset: int | None,
        to_datetime: str | None,
        by_duration: str | None,
        shift_by: int | None,
        from_file: Path | None,
    ) -> Self:
        """Return the target that the options set. Raises UsageError unless exactly one is set."""
        words = (to_earliest, to_latest, to_current)
        others = (to_offset, to_datetime, by_duration, shift_by, from_file)
        if sum(words) + sum(each is not None for each in others) != 1:
            raise UsageError(
                "one target is needed: --to-earliest, --to-latest, --to-current, --to-offset, --to-datetime, "
                "--by-duration, --shift-by or --from-file"
            )
        timestamp = None if to_datetime is None else timestamp_ms(to_datetime, "--to-datetime")
        if by_duration is not None:
            # Negative times have other meanings in ListOffsets.
            timestamp = max(time.time_ns() // 1_000_000 - duration_ms(by_duration, "--by-duration"), 0)
        return cls(
            earliest=to_earliest,
            latest=to_latest,
            current=to_current,
            offset=to_offset,
            timestamp_ms=timestamp,
            shift=shift_by,
            file=None if from_file is None else read_file(from_file),
        )


def read_file(path: Path) -> dict[TopicPartition, int]:
    """Read lines of topic,partition,offset, as Kafka's --export writes them for one group."""
    offsets = {}
    for number, line in enumerate(csv.reader(read_text(path, "--from-file").splitlines()), 1):
        if not line:
            continue
        try:
            topic, partition, offset = line
            offsets[TopicPartition(topic.strip(), int(partition))] = int(offset)
        except ValueError:
            raise UsageError(f"{path}, line {number}: {line} is not topic,partition,offset") from None
    return offsets


async def plan(
    session: Session, group: str, topics: Sequence[str], all_topics: bool, target: Target
) -> dict[TopicPartition, int]:
    """Return the new offset of each partition."""
    committed = await session.admin.list_group_offsets(group)
    if target.file is not None:
        tps = await find_partitions(session, [f"{tp.topic}:{tp.partition}" for tp in target.file])
    else:
        tps = sorted(committed) if all_topics else await find_partitions(session, topics)
    earliest, latest, targets = await asyncio.gather(
        session.admin.list_offsets(dict.fromkeys(tps, "earliest")),
        session.admin.list_offsets(dict.fromkeys(tps, "latest")),
        _target_offsets(session, tps, committed, target),
    )
    planned = {}
    for tp in tps:
        first, end, offset = earliest[tp].offset, latest[tp].offset, targets.get(tp)
        planned[tp] = first if target.earliest else end if offset is None else min(max(offset, first), end)
        if offset is not None and offset != planned[tp]:
            session.tell(f"{tp}: {offset} is not in the log, which goes from {first} to {end}: {planned[tp]}")
    return planned


async def _target_offsets(
    session: Session, tps: Sequence[TopicPartition], committed: Committed, target: Target
) -> dict[TopicPartition, int]:
    """Return the offsets before they are limited to the log's range.

    A partition that is missing goes to its end.
    """
    if target.file is not None:
        return dict(target.file)
    if target.offset is not None:
        return dict.fromkeys(tps, target.offset)
    if target.timestamp_ms is not None:
        by_time = await session.admin.list_offsets(dict.fromkeys(tps, target.timestamp_ms))
        return {tp: listed.offset for tp, listed in by_time.items() if listed.offset >= 0}
    if target.shift is not None:
        if without := [str(tp) for tp in tps if tp not in committed]:
            raise MillstreamError(f"no offset to shift: the group has none of {', '.join(without)}")
        return {tp: committed[tp].offset + target.shift for tp in tps}
    if target.current:
        return {tp: committed[tp].offset for tp in tps if tp in committed}
    return {}


async def set_offsets(session: Session, group: str, planned: Mapping[TopicPartition, int]) -> None:
    """Commit the planned offsets. Raises MillstreamError while the group has members."""
    state = (await session.admin.describe_groups([group]))[group].state
    if state not in INACTIVE:
        raise MillstreamError(
            f"group {group!r} is {state}: offsets can be set while it has no members. Stop its consumers"
        )
    await session.admin.alter_group_offsets(group, planned)


def reset_rows(group: str, planned: Mapping[TopicPartition, int]) -> Iterator[Row]:
    """Yield a row for each partition."""
    for tp, offset in sorted(planned.items()):
        yield {"group": group, "topic": tp.topic, "partition": tp.partition, "new_offset": offset}
