"""Where a read begins and ends: bounds as a caller gives them become ranges of offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from kafka_client import Client, TopicPartition
from kafka_client.errors import ConfigError
from plugins.spark.log_range import LogRange
from plugins.spark.options import ReadOptions
from plugins.spark.ranges import find_partitions, list_offsets

Bound: TypeAlias = int | str | datetime | Mapping[TopicPartition, int]
"""`earliest`, `latest`, an offset of every partition, offsets of some, or a time.

A time is a datetime or ISO 8601 text, local without a zone. It means the first record at or after it, or the
end without such a record. A partition that a mapping leaves out is read from its start, or up to its end.
"""


async def find_ranges(client: Client, options: ReadOptions, start: Bound, end: Bound) -> list[LogRange]:
    """Return what the log has between the bounds now, by topic and partition; no range is empty.

    With read_committed the log ends at the last stable offset. Raises ConfigError for a bound that is none,
    and KafkaError for a topic that does not exist.
    """
    ids = await find_partitions(client, options)
    tps = sorted(ids)
    first = await list_offsets(client, options, dict.fromkeys(tps, "earliest"))
    last = await list_offsets(client, options, dict.fromkeys(tps, "latest"))

    async def find(
        name: str, bound: Bound, default: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        if isinstance(bound, Mapping):
            return {**default, **_checked(name, bound, tps)}
        bound = _parse(name, bound)
        if isinstance(bound, int):
            return dict.fromkeys(tps, bound)
        if not isinstance(bound, datetime):
            return dict(first if bound == "earliest" else last)
        moment = dict.fromkeys(tps, round(bound.timestamp() * 1000))
        offsets = await list_offsets(client, options, moment)
        return {tp: offset if offset >= 0 else last[tp] for tp, offset in offsets.items()}

    starts, ends = await find("start", start, first), await find("end", end, last)
    ranges = [
        LogRange(*tp, max(starts[tp], first[tp]), min(ends[tp], last[tp]), topic_id=ids[tp]) for tp in tps
    ]
    return [each for each in ranges if each.start < each.end]


def _parse(name: str, bound: int | str | datetime) -> int | str | datetime:
    """Return text that is a time as a datetime, and every other bound as it is. Raises ConfigError."""
    if isinstance(bound, int):
        _check_offset(name, bound)
        return bound
    if isinstance(bound, datetime) or bound in ("earliest", "latest"):
        return bound
    try:
        return datetime.fromisoformat(bound)
    except ValueError:
        allowed = "earliest, latest, an offset, offsets by partition, or a time such as 2026-01-31T12:00"
        raise ConfigError(name, bound, allowed) from None


def _checked(
    name: str, bound: Mapping[TopicPartition, int], tps: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    offsets = {TopicPartition(*tp): offset for tp, offset in bound.items()}
    for tp, offset in offsets.items():
        if tp not in tps:
            raise ConfigError(name, str(tp), "no such partition is read: leave it out")
        _check_offset(name, offset)
    return offsets


def _check_offset(name: str, offset: int) -> None:
    if offset < 0:
        raise ConfigError(name, offset, "offsets are 0 or greater; the ends are earliest and latest")
