"""Where reading begins and ends, as the options say it; and which partitions there are."""

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
    """Where each partition begins. `number`: an offset, how many before the end, or ms since 1970."""

    kind: Literal["earliest", "latest", "offset", "last", "since"]
    number: int = 0


def parse_time(text: str, option: str, now_ms: int) -> int:
    """Milliseconds since 1970: of such a number, an ISO 8601 time (local unless it says), or `10m` for so
    long ago (ms, s, m, h, d).
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
    """What the options say; None where none is given, UsageError where more than one is."""
    found = []
    if from_beginning:
        found.append(Start("earliest"))
    if offset is not None:
        if offset not in ("earliest", "latest") and not offset.isdigit():
            raise UsageError(f"--offset {offset!r}: a number, earliest or latest")
        found.append(Start("offset", int(offset)) if offset.isdigit() else Start(offset))  # type: ignore[arg-type]
    if last is not None:
        found.append(Start("last", last))
    if since_ms is not None:
        found.append(Start("since", since_ms))
    if len(found) > 1:
        raise UsageError("give one of --from-beginning, --offset, --last and --since")
    return found[0] if found else None


async def find_topics(client: Client, topics: Sequence[str], include: re.Pattern[str] | None) -> list[str]:
    """The topics named, or those that match and are not Kafka's own; NotFound where none does.

    KafkaError UNKNOWN_TOPIC_OR_PARTITION names a topic that is not there.
    """
    if include is None:
        await client.metadata(topics)
        return list(topics)
    known = (await client.metadata(refresh=True)).topics
    found = [name for name, each in known.items() if include.fullmatch(name) and not each.is_internal]
    if not found:
        raise NotFound(f"--include {include.pattern!r}: none of {len(known)} topics has such a name")
    return sorted(found)


def select_partitions(found: Iterable[TopicPartition], wanted: Sequence[int]) -> list[TopicPartition]:
    """Those with the numbers wanted, all where none is; NotFound names a number that no topic has."""
    found = list(found)
    if missing := set(wanted) - {tp.partition for tp in found}:
        ends = ", ".join(f"{topic} has {sum(tp.topic == topic for tp in found)}" for topic in dict(found))
        raise NotFound(f"--partition {min(missing)}: there is none such ({ends}, counted from 0)")
    return [tp for tp in found if not wanted or tp.partition in wanted]


async def starting_offsets(
    admin: Admin, tps: Sequence[TopicPartition], start: Start, isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    """The offset each partition is read from."""
    if start.kind == "offset":
        return dict.fromkeys(tps, start.number)
    if start.kind == "since":
        return await offsets_at(admin, tps, start.number, isolation)
    earliest = {} if start.kind == "latest" else await admin.list_offsets(dict.fromkeys(tps, "earliest"))
    if start.kind == "earliest":
        return {tp: found.offset for tp, found in earliest.items()}
    latest = await end_offsets(admin, tps, isolation)
    if start.kind == "latest":
        return latest
    return {tp: max(end - start.number, earliest[tp].offset) for tp, end in latest.items()}


async def end_offsets(
    admin: Admin, tps: Iterable[TopicPartition], isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    """Where each partition ends now: with read_committed before the first open transaction."""
    found = await admin.list_offsets(dict.fromkeys(tps, "latest"), isolation_level=isolation)
    return {tp: each.offset for tp, each in found.items()}


async def offsets_at(
    admin: Admin, tps: Sequence[TopicPartition], time_ms: int, isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    """The first record at or after the time; where there is none, the end."""
    found = {tp: each.offset for tp, each in (await admin.list_offsets(dict.fromkeys(tps, time_ms))).items()}
    late = [tp for tp, offset in found.items() if offset < 0]
    return {**found, **(await end_offsets(admin, late, isolation) if late else {})}
