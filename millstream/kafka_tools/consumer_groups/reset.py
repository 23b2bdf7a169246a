"""`kafka-consumer-groups --reset-offsets`: the plan of new offsets, and its execution."""

from __future__ import annotations

import csv
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from kafka_client import TopicPartition
from kafka_client.errors import ErrorCode, KafkaError
from millstream.commands.group.reset import INACTIVE
from millstream.kafka_tools.consumer_groups.groups import (
    committed_offsets,
    list_names,
    log_offsets,
    read_group,
)
from millstream.kafka_tools.consumer_groups.terms import SCENARIOS, print_error
from millstream.kafka_tools.consumer_groups.topics import parse_topic_partitions
from millstream.kafka_tools.java.java_errors import JavaError, illegal_argument, unwrapped, wrapped
from millstream.kafka_tools.java.java_times import date_time_ms, duration_ms
from millstream.kafka_tools.options.arguments import Ended, OptionValues
from millstream.kafka_tools.running import tell
from millstream.terminal.session import Session

WIDTH = 15
"""Columns of names are at least so wide."""
UNQUOTED = 24
"""The most characters of a CSV field without quotes."""
Offsets = Mapping[TopicPartition, int]


async def reset_offsets(session: Session, values: OptionValues) -> None:
    """Reset groups' offsets, or only plan the reset, and print the new offsets."""
    names = await list_names(session) if values.has("all-groups") else values.texts("group")
    planned: dict[str, Offsets] = {}
    for name in sorted(set(names)):
        state = await _state(session, name)
        if state in INACTIVE:
            planned[name] = await _reset(session, values, name)
        else:
            print_error(
                f"Assignments can only be reset if the group '{name}' is inactive, but the current state is "
                f"{state}."
            )
            planned[name] = {}
    if values.has("export"):
        print(_exported(planned, with_groups=len(values.texts("group")) != 1))
    else:
        _print(planned)


async def _state(session: Session, name: str) -> str:
    with wrapped("describeGroups"):
        try:
            return (await read_group(session, name)).state
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return "Dead"
            raise


async def _reset(session: Session, values: OptionValues, group: str) -> Offsets:
    with unwrapped("describeTopics"):
        tps = await _partitions(session, values, group)
    planned = await _plan(session, values, group, tps)
    if values.has("execute") and not values.has("dry-run"):
        with unwrapped("alterConsumerGroupOffsets"):
            await session.admin.alter_group_offsets(group, planned)
    return planned


async def _partitions(session: Session, values: OptionValues, group: str) -> Collection[TopicPartition]:
    if values.has("all-topics"):
        return list(await committed_offsets(session, group))
    topics = values.texts("topic")
    if not topics and not values.has("from-file"):
        values.usage("One of the reset scopes should be defined: --all-topics, --topic.")
    tps = [tp for topic in topics if ":" in topic for tp in parse_topic_partitions(topic)]
    whole = [topic for topic in topics if ":" not in topic]
    described = await session.admin.describe_topics(whole) if whole else {}
    tps += [TopicPartition(name, p) for name, topic in described.items() for p in topic.partitions]
    return tps


async def _plan(
    session: Session, values: OptionValues, group: str, tps: Collection[TopicPartition]
) -> Offsets:
    """Return the new offsets by the scenario option that is present, in Java's order of checks."""
    if (offset := values.integer("to-offset", 64)) is not None:
        return await _within_log(session, dict.fromkeys(tps, offset))
    if values.has("to-earliest"):
        return await log_offsets(session, tps, "earliest")
    if values.has("to-latest"):
        return await log_offsets(session, tps, "latest")
    if values.has("shift-by"):
        return await _within_log(session, await _shifted(session, values, group, tps))
    if (text := values.text("to-datetime")) is not None:
        return await _at(session, tps, date_time_ms(text))
    if (text := values.text("by-duration")) is not None:
        return await _at(session, tps, time.time_ns() // 1_000_000 - duration_ms(text))
    if (path := values.text("from-file")) is not None:
        return await _from_file(session, values, group, Path(path))
    if values.has("to-current"):
        return await _current(session, group, tps)
    scenarios = ", ".join(f"[{name}]" for name in sorted(SCENARIOS))
    raise Ended(
        1, f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]", usage=True
    )


async def _shifted(
    session: Session, values: OptionValues, group: str, tps: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    committed = await committed_offsets(session, group)
    shifted = {}
    for tp in tps:
        shift = values.integer("shift-by", 64) or 0
        if tp not in committed:
            raise illegal_argument(
                f"Cannot shift offset for partition {tp} since there is no current committed offset"
            )
        shifted[tp] = committed[tp].offset + shift
    return shifted


async def _current(session: Session, group: str, tps: Iterable[TopicPartition]) -> Offsets:
    """Return the committed offsets, and the log end offset of partitions without one."""
    committed = await committed_offsets(session, group)
    there = {tp: committed[tp].offset for tp in tps if tp in committed}
    return there | await log_offsets(session, [tp for tp in tps if tp not in committed], "latest")


async def _at(session: Session, tps: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
    """Return the offsets at a time: the log end offset if no record has that timestamp or a later one."""
    offsets = await log_offsets(session, tps, timestamp_ms)
    without = sorted(tp for tp, offset in offsets.items() if offset < 0)
    for tp in without:
        print(
            f"\nWarn: Partition {tp.partition} from topic {tp.topic} is empty. Falling back to latest known "
            "offset."
        )
    return offsets | await log_offsets(session, without, "latest")


async def _within_log(session: Session, offsets: Offsets) -> Offsets:
    first = await log_offsets(session, offsets, "earliest")
    end = await log_offsets(session, offsets, "latest")
    planned = {}
    for tp, offset in offsets.items():
        planned[tp] = min(max(offset, first[tp]), end[tp])
        if offset != planned[tp]:
            which = "higher than latest" if offset > end[tp] else "lower than earliest"
            tell(
                f"note: New offset ({offset}) is {which} offset for topic partition {tp}. "
                f"Value will be set to {planned[tp]}"
            )
    return planned


async def _from_file(session: Session, values: OptionValues, group: str, path: Path) -> Offsets:
    if not path.exists():
        raise JavaError("java.lang.RuntimeException", f"java.io.IOException: Unable to read file {path}")
    plans = _read_plans(path.read_text(), values)
    if group not in plans:
        print_error(f"No reset plan for group {group} found.")
        return {}
    return await _within_log(session, plans[group])


def _read_plans(text: str, values: OptionValues) -> dict[str, dict[TopicPartition, int]]:
    """Parse lines `topic,partition,offset` of the only group, or `group,topic,partition,offset`."""
    rows = [row for row in csv.reader(text.splitlines()) if row]
    groups = values.texts("group")
    if len(groups) == 1 and rows and len(rows[0]) == 3:
        rows = [[groups[0], *row] for row in rows]
    plans: dict[str, dict[TopicPartition, int]] = {}
    for row in rows:
        try:
            group, topic, partition, offset = row
            plans.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            shown = ",".join(row)
            raise JavaError(
                "java.lang.RuntimeException", f"{shown}: not [group,]topic,partition,offset"
            ) from None
    return plans


def _exported(planned: Mapping[str, Offsets], *, with_groups: bool) -> str:
    lines = []
    for name in sorted(planned):
        for tp in sorted(planned[name]):
            row = [tp.topic, str(tp.partition), str(planned[name][tp])]
            lines.append(",".join(map(_quoted, [name, *row] if with_groups else row)) + "\n")
    return "".join(lines)


def _quoted(text: str) -> str:
    """Return a field of CSV as Jackson writes it. Long fields are always quoted."""
    if len(text) > UNQUOTED or set(text) & set(',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _print(planned: Mapping[str, Offsets]) -> None:
    rows = [
        (name, tp.topic, str(tp.partition), str(planned[name][tp]))
        for name in sorted(planned)
        for tp in sorted(planned[name])
    ]
    titles = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if planned else []
    first = max([WIDTH, *map(len, planned)])
    second = max([WIDTH, *(len(topic) for _, topic, _, _ in rows)])
    for group, topic, partition, offset in (*titles, *rows):
        print(f"\n{group:<{first}} {topic:<{second}} {partition:<10} {offset}", end="")
    print()
