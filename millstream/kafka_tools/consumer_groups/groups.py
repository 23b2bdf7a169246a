"""Groups as the tool reads them: those of KIP-848's protocol, with their epochs, and classic ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client import ListedGroup, OffsetAndMetadata, TopicPartition
from kafka_client.admin.consumer_groups import ask_consumer_group
from kafka_client.errors import ErrorCode, KafkaError, error_for
from kafka_client.group.coordinator import ask_coordinator
from kafka_client.wire.messages.consumer_group_describe import Assignment, DescribedGroup
from kafka_client.wire.messages.describe_groups import DescribedGroup as ClassicGroup
from kafka_client.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from millstream.commands.group.assignment import decode_assignment
from millstream.kafka_tools.java.java_errors import illegal_argument, wrapped
from millstream.terminal.session import Session

CONSUMER_TYPES = ("", "consumer")
"""The protocol types of groups of consumers."""
UPGRADED = {0: False, 1: True}
"""By the type that ConsumerGroupDescribe gives a member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member; `epoch`, `target` and `upgraded` are those of KIP-848."""

    member_id: str
    client_id: str
    host: str
    instance_id: str
    assigned: Sequence[TopicPartition]
    target: Sequence[TopicPartition] = ()
    epoch: int | None = None
    upgraded: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group; the epochs are those of KIP-848."""

    name: str
    state: str
    assignor: str
    members: Sequence[Member]
    epoch: int | None = None
    target_epoch: int | None = None


async def list_names(session: Session) -> list[str]:
    """Return the names of all consumer groups, sorted."""
    with wrapped("listGroups"):
        return [group.group_id for group in await list_consumer_groups(session)]


async def list_consumer_groups(session: Session) -> list[ListedGroup]:
    """Return all consumer groups, sorted by name."""
    groups = {group.group_id: group for group in await session.admin.list_groups()}
    listed = [groups[name] for name in sorted(groups)]
    return [group for group in listed if group.protocol_type in CONSUMER_TYPES and group.type != "share"]


async def read_groups(session: Session, names: Iterable[str]) -> dict[str, Group]:
    """Describe groups. Raises KafkaError GROUP_ID_NOT_FOUND if a group does not exist."""
    unique = list(dict.fromkeys(names))
    return dict(
        zip(unique, await asyncio.gather(*(read_group(session, name) for name in unique)), strict=True)
    )


async def read_group(session: Session, name: str) -> Group:
    """Describe a group. Raises KafkaError GROUP_ID_NOT_FOUND if it does not exist."""

    async def ask() -> Group:
        if (consumer_group := await ask_consumer_group(session.client, name)) is not None:
            return _consumer_group(consumer_group)
        request = DescribeGroupsRequest(groups=[name])
        response: DescribeGroupsResponse = await ask_coordinator(session.client, name, request)
        (group,) = response.groups
        if group.error_code:
            error = error_for(group.error_code)
            error.broker_message = group.error_message
            raise error
        return _classic_group(group)

    return await session.client.retrying(ask)


def _consumer_group(group: DescribedGroup) -> Group:
    members = [
        Member(
            member_id=m.member_id,
            client_id=m.client_id,
            host=m.client_host,
            instance_id=m.instance_id or "",
            assigned=_partitions(m.assignment),
            target=_partitions(m.target_assignment),
            epoch=m.member_epoch,
            upgraded=UPGRADED.get(m.member_type),
        )
        for m in group.members
    ]
    return Group(
        name=group.group_id,
        state=group.group_state,
        assignor=group.assignor_name,
        members=members,
        epoch=group.group_epoch,
        target_epoch=group.assignment_epoch,
    )


def _partitions(assignment: Assignment) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    ]


def _classic_group(group: ClassicGroup) -> Group:
    if group.protocol_type not in CONSUMER_TYPES:
        error = illegal_argument(f"GroupId {group.group_id} is not a consumer group ({group.protocol_type}).")
        error.from_future = True
        raise error
    members = [
        Member(
            member_id=m.member_id,
            client_id=m.client_id,
            host=m.client_host,
            instance_id=m.group_instance_id or "",
            assigned=decode_assignment(m.member_assignment),
        )
        for m in group.members
    ]
    return Group(name=group.group_id, state=group.group_state, assignor=group.protocol_data, members=members)


async def committed_offsets(session: Session, name: str) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """Return a group's committed offsets: none if the group does not exist."""
    with wrapped("listConsumerGroupOffsets"):
        try:
            return await session.admin.list_group_offsets(name)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return {}
            raise


async def log_offsets(
    session: Session, tps: Iterable[TopicPartition], spec: str | int
) -> dict[TopicPartition, int]:
    """Return offsets of partitions: -1 if no record has the timestamp or a later one."""
    with wrapped("listOffsets"):
        listed = await session.admin.list_offsets(dict.fromkeys(tps, spec))
    return {tp: each.offset for tp, each in listed.items()}
