"""The groups of consumers before Kafka 0.9, which kept their state in ZooKeeper: read and deleted.

/consumers/G/ids/C           a member and its subscription; ephemeral
/consumers/G/owners/T/P      the member's thread that reads a partition; ephemeral
/consumers/G/offsets/T/P     the offset of the next record to read, in decimal
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kafka_client.topic_partition import TopicPartition
from logd.metadata.zookeeper.errors import NoNode
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.znodes import paths, znodes


@dataclass(frozen=True, slots=True)
class OldMember:
    """A live member: the number of its threads by topic, or by a pattern (`white_list`, `black_list`)."""

    subscription: Mapping[str, int]
    pattern: str = "static"


@dataclass(frozen=True, slots=True)
class OldGroup:
    """A group of old consumers; `offsets` are those of the next records to read, as in OffsetCommit."""

    name: str
    members: Mapping[str, OldMember]
    owners: Mapping[TopicPartition, str]
    offsets: Mapping[TopicPartition, int]


async def old_groups(session: Session) -> list[str]:
    """Return the names of all groups."""
    return await session.find_children(paths.CONSUMERS)


async def old_members(session: Session, groups: Sequence[str]) -> list[list[str]]:
    """Return the ids of each group's members."""
    return await session.children_of_all([f"{paths.CONSUMERS}/{name}/ids" for name in groups])


async def read_old_group(session: Session, name: str) -> OldGroup | None:
    """Return a group's data, or None if there is no such group.

    Raises BadZnode if an offset is not a number.
    """
    root = f"{paths.CONSUMERS}/{name}"
    if await session.exists(root) is None:
        return None
    owners = await _by_partition(session, f"{root}/owners")
    offsets = await _by_partition(session, f"{root}/offsets")
    return OldGroup(
        name,
        await _members(session, f"{root}/ids"),
        {tp: data.decode("utf-8", "replace") for tp, (_, data) in owners.items()},
        {tp: znodes.decode_number(path, data) for tp, (path, data) in offsets.items()},
    )


async def old_topics(session: Session, name: str) -> list[str]:
    """Return the topics of a group that have owners or offsets, in order of their names."""
    owned = await session.find_children(f"{paths.CONSUMERS}/{name}/owners")
    return sorted({*owned, *await session.find_children(f"{paths.CONSUMERS}/{name}/offsets")})


async def delete_old_group(session: Session, name: str, topic: str | None = None) -> bool:
    """Delete a group, or only its data of `topic`; return False if the group has live members.

    The group is deleted with its last topic. Raises NoNode if there is no such group.
    """
    root = f"{paths.CONSUMERS}/{name}"
    if await session.exists(root) is None:
        raise NoNode(root)
    if await session.find_children(f"{root}/ids"):
        return False
    if topic is None or await old_topics(session, name) == [topic]:
        await _delete_below(session, root)
    else:
        for registry in ("owners", "offsets"):
            await _delete_below(session, f"{root}/{registry}/{topic}")
    return True


async def _delete_below(session: Session, path: str) -> None:
    """Delete a znode and all znodes below it, if it exists."""
    for child in await session.find_children(path):
        await _delete_below(session, f"{path}/{child}")
    try:
        await session.delete(path)
    except NoNode:
        return


async def _members(session: Session, root: str) -> dict[str, OldMember]:
    names = await session.find_children(root)
    values = await session.find_all([f"{root}/{name}" for name in names])
    return {name: _member(value[0]) for name, value in zip(names, values, strict=True) if value is not None}


def _member(data: bytes) -> OldMember:
    """Return a member from its znode's value; an empty one if the value is unreadable.

    Members are only displayed, so an unreadable one does no harm.
    """
    try:
        member = msgspec.json.decode(data, type=_Member)
    except msgspec.DecodeError:
        return OldMember({})
    return OldMember(member.subscription, member.pattern)


async def _by_partition(session: Session, root: str) -> dict[TopicPartition, tuple[str, bytes]]:
    topics = await session.find_children(root)
    indexes = await session.children_of_all([f"{root}/{topic}" for topic in topics])
    partitions = [
        TopicPartition(topic, index)
        for topic, names in zip(topics, indexes, strict=True)
        for index in sorted(int(name) for name in names if name.isdecimal())
    ]
    all_paths = [f"{root}/{tp.topic}/{tp.partition}" for tp in partitions]
    values = await session.find_all(all_paths)
    return {
        tp: (path, value[0])
        for tp, path, value in zip(partitions, all_paths, values, strict=True)
        if value is not None
    }


class _Member(msgspec.Struct):
    subscription: dict[str, int] = {}
    pattern: str = "static"
