"""The rows of `group describe` and `group members`: groups, their members, offsets and lag."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka_client import (
    GroupDescription,
    GroupMemberDescription,
    ListedGroup,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka_client.errors import ErrorCode, KafkaError
from millstream.commands.group.assignment import decode_assignment
from millstream.terminal.output import Row
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound

CONSUMER = "consumer"
"""The protocol type of groups whose assignments are partitions."""
DEAD = "Dead"


class Group(NamedTuple):
    """A group and its committed offsets."""

    described: GroupDescription
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


async def read_groups(session: Session, names: Sequence[str] | None) -> list[Group]:
    """Return the named groups, or all. Raises NotFound if a group does not exist."""
    listed = {group.group_id: group for group in await session.admin.list_groups()}
    requested = sorted(listed) if not names else list(names)
    for name in requested:
        if name not in listed:
            raise NotFound(f"there is no group {name!r}")
    return list(await asyncio.gather(*(_read(session, listed[name]) for name in requested)))


async def _read(session: Session, listed: ListedGroup) -> Group:
    described = (await session.admin.describe_groups([listed.group_id]))[listed.group_id]
    if described.state == DEAD:
        # The group is listed, but of another type, such as a share group.
        described = GroupDescription(listed.group_id, listed.state or DEAD, listed.protocol_type, "")
    try:
        offsets = await session.admin.list_group_offsets(listed.group_id)
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        offsets = {}
    return Group(described, offsets)


async def state_rows(session: Session, groups: Iterable[Group]) -> list[Row]:
    """Return a row for each group, with its coordinator."""
    return [
        {
            "group": group.group_id,
            "coordinator": await session.client.coordinator(group.group_id),
            "assignment_strategy": group.protocol or None,
            "state": group.state,
            "members": len(group.members),
        }
        for group, _ in groups
    ]


async def lag_rows(session: Session, groups: Sequence[Group]) -> list[Row]:
    """Return a row for each partition with an offset or a member, and for each member without partitions."""
    owners = [
        {tp: member for member in group.described.members for tp in assigned(group.described, member)}
        for group in groups
    ]
    tps = {tp for group, owned in zip(groups, owners, strict=True) for tp in (*group.offsets, *owned)}
    topics = (await session.client.metadata({tp.topic for tp in tps}, allow_missing=True)).topics
    existing = [tp for tp in tps if tp.topic in topics and tp.partition in topics[tp.topic].partitions]
    ends = await session.admin.list_offsets(dict.fromkeys(existing, "latest"))
    rows: list[Row] = []
    for group, owned in zip(groups, owners, strict=True):
        rows += [
            _lag_row(
                group.described.group_id,
                tp,
                group.offsets.get(tp),
                ends[tp].offset if tp in ends else None,
                owned.get(tp),
            )
            for tp in sorted({*group.offsets, *owned})
        ]
        idle = [member for member in group.described.members if not assigned(group.described, member)]
        rows += [_lag_row(group.described.group_id, None, None, None, member) for member in idle]
    return rows


def _lag_row(
    group: str,
    tp: TopicPartition | None,
    committed: OffsetAndMetadata | None,
    end: int | None,
    owner: GroupMemberDescription | None,
) -> dict[str, Any]:
    return {
        "group": group,
        "topic": tp.topic if tp else None,
        "partition": tp.partition if tp else None,
        "current_offset": committed.offset if committed else None,
        "log_end_offset": end,
        "lag": max(end - committed.offset, 0) if committed and end is not None else None,
        "consumer_id": owner.member_id if owner else None,
        "host": owner.client_host if owner else None,
        "client_id": owner.client_id if owner else None,
    }


def member_rows(groups: Iterable[Group]) -> Iterator[Row]:
    """Yield a row for each member."""
    for group, _ in groups:
        for member in sorted(group.members, key=lambda each: each.member_id):
            tps = assigned(group, member)
            yield {
                "group": group.group_id,
                "consumer_id": member.member_id,
                "host": member.client_host,
                "client_id": member.client_id,
                "group_instance_id": member.group_instance_id,
                "partitions": len(tps),
                "assignment": [str(tp) for tp in tps],
            }


def assigned(group: GroupDescription, member: GroupMemberDescription) -> list[TopicPartition]:
    """Return a consumer's partitions; none in groups that assign something else, such as Connect's tasks."""
    return sorted(decode_assignment(member.assignment)) if group.protocol_type == CONSUMER else []
