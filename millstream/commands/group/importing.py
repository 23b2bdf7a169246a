"""`group import`: offsets of a group before Kafka 0.9, kept in ZooKeeper, become committed offsets.

An offset outside the log is left out and reported. A consumer would silently reset such an offset by its
`auto.offset.reset`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_client import OffsetAndMetadata, TopicPartition
from kafka_client.errors import MillstreamError
from logd.metadata.zookeeper.old_consumers import OldGroup
from millstream.commands.group.old_consumers import known_partitions, read_group
from millstream.commands.group.reset import INACTIVE
from millstream.terminal.ensemble import registered, zookeeper
from millstream.terminal.output import Row
from millstream.terminal.partitions import parse_partitions
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, Partly


@dataclass(frozen=True, slots=True)
class Planned:
    """An offset in ZooKeeper.

    `committed`: the group's offset in Kafka; `why_not`: why the offset is left out, or None.
    """

    tp: TopicPartition
    offset: int
    committed: int | None = None
    why_not: str | None = None


async def import_offsets(
    session: Session,
    name: str,
    connect: str,
    config: Path | None,
    topics: Sequence[str],
    *,
    execute: bool,
    force: bool,
    yes: bool,
) -> list[Planned]:
    """Return the imported offsets, or with `execute` false the planned ones.

    Raises MillstreamError for an active group.
    """
    async with zookeeper(connect, config) as ensemble:
        group = await read_group(ensemble, name)
        servers = await registered(ensemble, session.servers)
    requested = _requested_offsets(group, topics)
    async with servers.client() as client:
        asking = Session(session.form, client, servers)
        await _check_idle(asking, group, execute=execute, force=force)
        planned = await _plan(asking, name, requested)
        if execute:
            await _commit(asking, name, planned, yes=yes)
    return planned


def _requested_offsets(group: OldGroup, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """Return the offsets of the requested topics. Raises NotFound if the group has none of a topic."""
    if not topics:
        requested = dict(group.offsets)
    else:
        requested = {}
        for text in topics:
            topic, partitions = parse_partitions(text)
            some = {
                tp: offset
                for tp, offset in group.offsets.items()
                if tp.topic == topic and (partitions is None or tp.partition in partitions)
            }
            if len(some) < (1 if partitions is None else len(set(partitions))):
                raise NotFound(f"group {group.name!r} has no offset in ZooKeeper of all of {text}")
            requested |= some
    if not requested:
        raise NotFound(f"group {group.name!r} has no offsets in ZooKeeper")
    return requested


async def _check_idle(session: Session, group: OldGroup, *, execute: bool, force: bool) -> None:
    """Raise MillstreamError, or warn without `execute`, if the group is active.

    Offsets that its members commit during the copy would be lost.
    """
    state = (await session.admin.describe_groups([group.name]))[group.name].state
    why = None
    if state not in INACTIVE:
        why = f"group {group.name!r} is {state} in Kafka: stop its consumers"
    elif group.members and not force:
        members = ", ".join(sorted(group.members))
        why = f"group {group.name!r} has members in ZooKeeper ({members}): stop them, or give --force"
    if why is None:
        return
    if execute:
        raise MillstreamError(f"{why}. Nothing was imported")
    session.tell(why)


async def _plan(session: Session, group: str, requested: Mapping[TopicPartition, int]) -> list[Planned]:
    existing = await known_partitions(session, requested.keys())
    led = [tp for tp, partition in existing.items() if partition.leader >= 0]
    earliest, latest, committed = await asyncio.gather(
        session.admin.list_offsets(dict.fromkeys(led, "earliest")),
        session.admin.list_offsets(dict.fromkeys(led, "latest")),
        session.admin.list_group_offsets(group),
    )

    def why_not(tp: TopicPartition, offset: int) -> str | None:
        if tp not in existing:
            return "there is no such topic or partition"
        if tp not in earliest or tp not in latest:
            return "it has no leader"
        first, end = earliest[tp].offset, latest[tp].offset
        return None if first <= offset <= end else f"its log goes from {first} to {end}"

    return [
        Planned(tp, offset, _offset(committed.get(tp)), why_not(tp, offset))
        for tp, offset in sorted(requested.items())
    ]


def _offset(committed: OffsetAndMetadata | None) -> int | None:
    return None if committed is None else committed.offset


async def _commit(session: Session, group: str, planned: Sequence[Planned], *, yes: bool) -> None:
    offsets = {each.tp: each.offset for each in planned if each.why_not is None}
    if not offsets:
        return
    replaced = [
        f"{each.tp} ({each.committed})"
        for each in planned
        if each.tp in offsets and each.committed not in (None, each.offset)
    ]
    if replaced:
        session.confirm(f"Replace offsets that {group} has already, of {', '.join(replaced)}?", yes=yes)
    await session.admin.alter_group_offsets(group, offsets)


def import_rows(group: str, planned: Sequence[Planned]) -> Iterator[Row]:
    """Yield a row for each partition."""
    for each in planned:
        yield {
            "group": group,
            "topic": each.tp.topic,
            "partition": each.tp.partition,
            "zookeeper_offset": each.offset,
            "current_offset": each.committed,
            "new_offset": each.offset if each.why_not is None else None,
            "left_out": each.why_not,
        }


def tell_left_out(session: Session, planned: Sequence[Planned], *, executed: bool) -> None:
    """Report the offsets that were left out. Raises Partly, or MillstreamError if all were left out."""
    left_out = [f"{each.tp} at {each.offset}: {each.why_not}" for each in planned if each.why_not is not None]
    if not left_out:
        return
    text = f"{len(left_out)} of {len(planned)} left out: {'; '.join(left_out)}"
    if not executed:
        session.tell(text)
        return
    raise Partly(text) if len(left_out) < len(planned) else MillstreamError(text)
