"""The target offsets of a reset: the options of Kafka's tool, and the offsets that they select."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafka_client import Admin, TopicPartition
from kafka_client.errors import ConfigError
from streams.errors import StreamsError

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a reset: at most one field is set; the earliest offset if none is."""

    to_earliest: bool = False
    to_latest: bool = False
    to_offset: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    shift_by: int | None = None
    from_file: Path | None = None

    def __post_init__(self) -> None:
        words = [self.to_earliest, self.to_latest]
        values = [self.to_offset, self.to_datetime, self.by_duration, self.shift_by, self.from_file]
        if sum(words) + sum(each is not None for each in values) > 1:
            allowed = (
                "one of --to-earliest, --to-latest, --to-offset, --to-datetime, --by-duration, --shift-by, "
                "--from-file"
            )
            raise ConfigError("reset", "several targets", allowed)

    async def offsets(
        self, admin: Admin, tps: Collection[TopicPartition], group: str, warn: Callable[[str], None]
    ) -> dict[TopicPartition, int]:
        """Return the new offset of each partition, within the bounds of its log; ``warn`` of adjustments."""
        earliest = await admin.list_offsets(dict.fromkeys(tps, "earliest"))
        latest = await admin.list_offsets(dict.fromkeys(tps, "latest"))
        unbounded = await self._unbounded(admin, tps, group)
        offsets: dict[TopicPartition, int] = {}
        for tp in tps:
            first, end = earliest[tp].offset, latest[tp].offset
            offset = end if self.to_latest else first if unbounded is None else unbounded.get(tp)
            if offset is None:
                warn(
                    f"Partition {tp.partition} from topic {tp.topic} is empty, without a committed record. "
                    "Falling back to latest known offset."
                )
                offset = end
            if offset < first:
                warn(f"New offset ({offset}) is lower than earliest offset. Value will be set to {first}")
            elif offset > end:
                warn(f"New offset ({offset}) is higher than latest offset. Value will be set to {end}")
            offsets[tp] = min(max(offset, first), end)
        return offsets

    async def _unbounded(
        self, admin: Admin, tps: Collection[TopicPartition], group: str
    ) -> Mapping[TopicPartition, int] | None:
        """Return the target offsets, which may be outside the logs; None for the logs' beginnings.

        Partitions without an offset for a time are missing.
        """
        if self.to_offset is not None:
            return dict.fromkeys(tps, self.to_offset)
        if self.from_file is not None:
            return _of_all(read_plan(self.from_file), tps, f"{self.from_file} has no line for")
        if self.shift_by is not None:
            committed = await admin.list_group_offsets(group)
            shifted = {tp: committed[tp].offset + self.shift_by for tp in tps if tp in committed}
            return _of_all(shifted, tps, "the application has no committed offset to shift of")
        moment = self._timestamp()
        if moment is None:
            return None
        listed = await admin.list_offsets(dict.fromkeys(tps, moment))
        return {tp: each.offset for tp, each in listed.items() if each.offset >= 0}

    def _timestamp(self) -> int | None:
        if self.to_datetime is not None:
            return timestamp_ms(self.to_datetime)
        if self.by_duration is not None:
            return max(time.time_ns() // 1_000_000 - duration_ms(self.by_duration), 0)
        return None


def _of_all(
    offsets: Mapping[TopicPartition, int], tps: Collection[TopicPartition], missing: str
) -> Mapping[TopicPartition, int]:
    if without := [str(tp) for tp in tps if tp not in offsets]:
        raise StreamsError(f"{missing} {', '.join(without)}")
    return offsets


def read_plan(path: Path) -> dict[TopicPartition, int]:
    """Read a file of lines ``topic,partition,offset``. Raises ConfigError for any other line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError("--from-file", str(path), f"a file that can be read: {error}") from None
    plan: dict[TopicPartition, int] = {}
    for number, line in enumerate(csv.reader(lines), 1):
        try:
            topic, partition, offset = line
            plan[TopicPartition(topic.strip(), int(partition))] = int(offset)
        except ValueError:
            raise ConfigError(f"{path}, line {number}", ",".join(line), "topic,partition,offset") from None
    return plan


def timestamp_ms(text: str) -> int:
    """Return the ms since 1970 of an ISO 8601 time, which is UTC unless it has an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError("--to-datetime", text, "as 2013-01-31T12:00:00.000, with Z or +01:00") from None
    return max(round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000), 0)


def duration_ms(text: str) -> int:
    """Return the ms of an ISO 8601 duration of days, hours, minutes and seconds."""
    match = _DURATION.fullmatch(text)
    parts = {} if match is None else {k: float(v) for k, v in match.groupdict().items() if v is not None}
    if not parts:
        raise ConfigError("--by-duration", text, "P1DT2H30M, PT15M or PT10S")
    return round(timedelta(**parts).total_seconds() * 1000)
