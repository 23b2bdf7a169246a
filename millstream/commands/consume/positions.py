"""The offsets where reading begins and ends, by the options, and the partitions to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kafka_client import Admin, Client, IsolationLevel, TopicPartition
from millstream.terminal.status import NotFound, UsageError

_AGO = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Start:
    """The start of each partition. `number`: an offset, a distance from the end, or ms since 1970."""

    kind: Literal["earliest", "latest", "offset", "last", "since"]
    number: int = 0


def parse_time(text: str, option: str, now_ms: int) -> int:
    """Return a time as milliseconds since 1970.

    The text is such a number, an ISO 8601 time (local without a zone), or an age as `10m` (ms, s, m, h, d).
    Raises UsageError if it is none of them.
    """
    if ago := _AGO.fullmatch(text):
        return now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    try:
        return int(text) if text.isdigit() else round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise UsageError(
            f"{option} {text!r}: neither a time such as 2026-01-31T12:00:00, nor 10m for ten minutes ago, "
            "nor milliseconds since 1970"
        ) from None


def parse_start(
    offset: str | None, from_beginning: bool, last: int | None, since_ms: int | None
) -> Start | None:
    """Return the start that the options set, or None. Raises UsageError if more than one is set."""
    starts = []
    if from_beginning:
        starts.append(Start("earliest"))
    if offset is not None:
        if offset not in ("earliest", "latest") and not offset.isdigit():
            raise UsageError(f"--offset {offset!r}: a number, earliest or latest")
        starts.append(Start("offset", int(offset)) if offset.isdigit() else Start(offset))  # type: ignore[arg-type]
    if last is not None:
        starts.append(Start("last", last))
    if since_ms is not None:
        starts.append(Start("since", since_ms))
    if len(starts) > 1:
        raise UsageError("give one of --from-beginning, --offset, --last and --since")
    return starts[0] if starts else None


async def find_topics(client: Client, topics: Sequence[str], include: re.Pattern[str] | None) -> list[str]:
    """Return the named topics, or the topics that match `include` and are not internal.

    Raises NotFound if none matches, and KafkaError UNKNOWN_TOPIC_OR_PARTITION if a named topic does not
    exist.
    """
    if include is None:
        await client.metadata(topics)
        return list(topics)
    topics_by_name = (await client.metadata(refresh=True)).topics
    matches = [
        name for name, each in topics_by_name.items() if include.fullmatch(name) and not each.is_internal
    ]
    if not matches:
        raise NotFound(f"--include {include.pattern!r}: none of {len(topics_by_name)} topics has such a name")
    return sorted(matches)


def select_partitions(existing: Iterable[TopicPartition], numbers: Sequence[int]) -> list[TopicPartition]:
    """Return the partitions with these numbers, or all without numbers.

    Raises NotFound for a number that no topic has.
    """
    existing = list(existing)
    if missing := set(numbers) - {tp.partition for tp in existing}:
        ends = ", ".join(
            f"{topic} has {sum(tp.topic == topic for tp in existing)}" for topic in dict(existing)
        )
        raise NotFound(f"--partition {min(missing)}: there is none such ({ends}, counted from 0)")
    return [tp for tp in existing if not numbers or tp.partition in numbers]


async def starting_offsets(
    admin: Admin, tps: Sequence[TopicPartition], start: Start, isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    """Return the offset at which each partition begins."""
    if start.kind == "offset":
        return dict.fromkeys(tps, start.number)
    if start.kind == "since":
        return await offsets_at(admin, tps, start.number, isolation)
    earliest = {} if start.kind == "latest" else await admin.list_offsets(dict.fromkeys(tps, "earliest"))
    if start.kind == "earliest":
        return {tp: listed.offset for tp, listed in earliest.items()}
    latest = await end_offsets(admin, tps, isolation)
    if start.kind == "latest":
        return latest
    return {tp: max(end - start.number, earliest[tp].offset) for tp, end in latest.items()}


async def end_offsets(
    admin: Admin, tps: Iterable[TopicPartition], isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    """Return each partition's current end offset; with read_committed the last stable offset."""
    listed = await admin.list_offsets(dict.fromkeys(tps, "latest"), isolation_level=isolation)
    return {tp: each.offset for tp, each in listed.items()}


async def offsets_at(
    admin: Admin, tps: Sequence[TopicPartition], time_ms: int, isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    """Return the offset of the first record at or after the time, or the end offset without such a record."""
    offsets = {
        tp: each.offset for tp, each in (await admin.list_offsets(dict.fromkeys(tps, time_ms))).items()
    }
    late = [tp for tp, offset in offsets.items() if offset < 0]
    return {**offsets, **(await end_offsets(admin, late, isolation) if late else {})}
