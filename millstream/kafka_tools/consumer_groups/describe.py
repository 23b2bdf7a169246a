"""Lists and descriptions of groups: members, states and offsets, as `kafka-consumer-groups` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from kafka_client import TopicPartition
from millstream.kafka_tools.consumer_groups.groups import (
    Group,
    Member,
    committed_offsets,
    list_consumer_groups,
    list_names,
    log_offsets,
    read_groups,
)
from millstream.kafka_tools.consumer_groups.terms import print_error
from millstream.kafka_tools.java.java_errors import JavaError, illegal_argument
from millstream.kafka_tools.options.arguments import OptionValues
from millstream.kafka_tools.running import tell
from millstream.terminal.session import Session

MISSING = "-"
STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
TYPES = {"classic": "Classic", "consumer": "Consumer"}

# Listing


async def list_groups(session: Session, values: OptionValues) -> None:
    """Print groups' names, with types and states if these are asked for."""
    if not values.has("type", "state"):
        for name in await list_names(session):
            print(name)
        return
    types, states = _types(values.text("type") or ""), _states(values.text("state") or "")
    groups = [
        group
        for group in await list_consumer_groups(session)
        if (not types or group.type.lower() in types) and (not states or group.state in states)
    ]
    columns = [("GROUP", [group.group_id for group in groups])]
    if values.has("type"):
        columns.append(("TYPE", [TYPES.get(group.type.lower(), "Unknown") for group in groups]))
    if values.has("state"):
        columns.append(("STATE", [group.state or "Unknown" for group in groups]))
    first = max([15, *(len(group.group_id) for group in groups)]) + 10
    for row in zip(*([title, *values] for title, values in columns), strict=True):
        print(" ".join(f"{value:<{first if at == 0 else 20}}" for at, value in enumerate(row)))


def _types(text: str) -> set[str]:
    types = {each.strip() for each in text.lower().split(",")} if text else set()
    if types - TYPES.keys():
        raise illegal_argument(f"Invalid types list '{text}'. Valid types are: {', '.join(TYPES.values())}")
    return types


def _states(text: str) -> set[str]:
    by_name = {state.lower(): state for state in STATES}
    states = [each.strip().lower() for each in text.split(",")] if text else []
    if any(each not in by_name for each in states):
        raise illegal_argument(f"Invalid state list '{text}'. Valid states are: {', '.join(STATES)}")
    return {by_name[each] for each in states}


# Describing


async def describe_groups(session: Session, values: OptionValues) -> None:
    """Print groups' offsets, members or states."""
    names = await list_names(session) if values.has("all-groups") else values.texts("group")
    groups = await read_groups(session, names)
    verbose = values.has("verbose")
    for _, group in sorted(groups.items()):
        if values.has("members"):
            _print_members(group, verbose)
        elif values.has("state"):
            await _print_state(session, group, verbose)
        else:
            await _print_offsets(session, group, verbose)


def _is_shown(group: Group, rows: int) -> bool:
    """Print a note on the group's state. Return True if the group has rows to print."""
    if group.state == "Dead":
        print_error(f"Consumer group '{group.name}' does not exist.")
    elif group.state == "Empty":
        tell(f"\nConsumer group '{group.name}' has no active members.")
    elif group.state in REBALANCING:
        tell(f"\nWarning: Consumer group '{group.name}' is rebalancing.")
    elif group.state != "Stable":
        raise JavaError(
            "org.apache.kafka.common.KafkaException",
            f"Expected a valid consumer group state, but found '{group.state}'.",
        )
    return group.state != "Dead" and rows > 0


OFFSETS = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)
WITH_EPOCH = (*OFFSETS[:3], "LEADER-EPOCH", *OFFSETS[3:])
GROWING = ("GROUP", "TOPIC", "CONSUMER-ID", "HOST")
"""Columns at least 15 wide that grow with their widest cell."""


async def _print_offsets(session: Session, group: Group, verbose: bool) -> None:
    rows = sorted(await _offset_rows(session, group), key=lambda row: (row["TOPIC"], int(row["PARTITION"])))
    if not _is_shown(group, len(rows)):
        return
    titles = WITH_EPOCH if verbose else OFFSETS
    widths = {title: 10 if title == "PARTITION" else 15 for title in titles}
    widths |= {title: max([15, *(len(row[title]) for row in rows)]) for title in GROWING}
    for row in (dict(zip(titles, titles, strict=True)), *rows):
        padded = [f"{row[title]:<{widths[title]}}" for title in titles[:-1]]
        print(f"\n{' '.join(padded)} {row[titles[-1]]}", end="")
    print()


async def _offset_rows(session: Session, group: Group) -> list[dict[str, str]]:
    committed = await committed_offsets(session, group.name)
    rows: list[dict[str, str]] = []

    async def add(tps: Iterable[TopicPartition], member: Member | None) -> None:
        ordered = sorted(tps)
        ends = await log_offsets(session, ordered, "latest")
        for tp in ordered:
            offset, end = committed.get(tp), ends.get(tp)
            has_epoch = offset is not None and offset.leader_epoch >= 0
            rows.append(
                {
                    "GROUP": group.name,
                    "TOPIC": tp.topic,
                    "PARTITION": str(tp.partition),
                    "LEADER-EPOCH": str(offset.leader_epoch) if offset is not None and has_epoch else MISSING,
                    "CURRENT-OFFSET": MISSING if offset is None else str(offset.offset),
                    "LOG-END-OFFSET": MISSING if end is None else str(end),
                    "LAG": MISSING if offset is None or end is None else str(end - offset.offset),
                    "CONSUMER-ID": member.member_id if member else MISSING,
                    "HOST": member.host if member else MISSING,
                    "CLIENT-ID": member.client_id if member else MISSING,
                }
            )

    owned: set[TopicPartition] = set()
    for member in sorted(group.members, key=lambda member: -len(member.assigned)):
        if member.assigned:
            owned.update(member.assigned)
            await add(member.assigned, member)
    if left := [tp for tp in committed if tp not in owned]:
        await add(left, None)
    return rows


def _print_members(group: Group, verbose: bool) -> None:
    is_shown = _is_shown(group, len(group.members))
    members = group.members if is_shown else ()
    with_instances = any(member.instance_id for member in members)
    upgrades = {member.upgraded for member in members}
    rows = [_member_row(group, member) for member in members]
    titles = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    if not with_instances:
        titles.remove("GROUP-INSTANCE-ID")
    details = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    if {True, False} <= upgrades:
        details.append("UPGRADED")
    widths = dict.fromkeys((*titles, *details), 15)
    widths |= {"GROUP-INSTANCE-ID": 17, "CURRENT-ASSIGNMENT": 20, "TARGET-ASSIGNMENT": 20, "UPGRADED": 0}
    for title in ("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", *details[1:4:2]):
        widths[title] = max([widths[title], *(len(row[title]) for row in rows)])
    print()
    for row in ({title: title for title in widths}, *rows):
        line = "".join(f"{row[title]:<{widths[title]}} " for title in titles)
        if verbose:
            line += " ".join(f"{row[title]:<{widths[title]}}" for title in details)
        print(line)


def _member_row(group: Group, member: Member) -> dict[str, str]:
    return {
        "GROUP": group.name,
        "CONSUMER-ID": member.member_id,
        "GROUP-INSTANCE-ID": member.instance_id,
        "HOST": member.host,
        "CLIENT-ID": member.client_id,
        "#PARTITIONS": str(len(member.assigned)),
        "CURRENT-EPOCH": MISSING if member.epoch is None else str(member.epoch),
        "CURRENT-ASSIGNMENT": _assignment(member.assigned),
        "TARGET-EPOCH": MISSING if group.target_epoch is None else str(group.target_epoch),
        "TARGET-ASSIGNMENT": _assignment(member.target),
        "UPGRADED": MISSING if member.upgraded is None else str(member.upgraded).lower(),
    }


def _assignment(tps: Sequence[TopicPartition]) -> str:
    """Return partitions as `topic:0,1;other:0`, or a dash for none."""
    topics = groupby(sorted(tps), key=lambda tp: tp.topic)
    shown = [f"{topic}:{','.join(str(tp.partition) for tp in each)}" for topic, each in topics]
    return ";".join(sorted(shown)) or MISSING


async def _print_state(session: Session, group: Group, verbose: bool) -> None:
    if not _is_shown(group, 1):
        return
    node = await session.client.coordinator(group.name)
    broker = (await session.client.metadata(())).brokers[node]
    fields = {
        "GROUP": group.name,
        "COORDINATOR (ID)": f"{broker.host}:{broker.port}  ({node})",
        "ASSIGNMENT-STRATEGY": group.assignor or MISSING,
        "STATE": group.state,
        "GROUP-EPOCH": MISSING if group.epoch is None else str(group.epoch),
        "TARGET-ASSIGNMENT-EPOCH": MISSING if group.target_epoch is None else str(group.target_epoch),
    }
    widths = {
        "GROUP": max(15, len(fields["GROUP"])),
        "COORDINATOR (ID)": max(25, len(fields["COORDINATOR (ID)"])),
        "ASSIGNMENT-STRATEGY": 20,
        "STATE": 20,
    }
    if verbose:
        widths |= {"GROUP-EPOCH": 15, "TARGET-ASSIGNMENT-EPOCH": 25}
    for row, last in (({title: title for title in widths}, "#MEMBERS"), (fields, str(len(group.members)))):
        print(f"\n{''.join(f'{row[title]:<{width}} ' for title, width in widths.items())}{last}", end="")
    print()
