"""The throttles of replication that a reassignment sets, and takes away when it is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from logd.client import OngoingReassignment, ResourceType, TopicPartition
from millstream.kafka_tools.java_order import hash_order, integer_hash, string_order
from millstream.kafka_tools.reassign_partitions.plan import Assignment
from millstream.terminal.session import Session

BROKER_KEYS = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"


async def clear_throttles(session: Session, moves: Iterable[tuple[TopicPartition, list[int]]]) -> None:
    """Take away those of all brokers, and of the topics that moved."""
    listed = list(moves)
    known = [broker.node_id for broker in (await session.admin.describe_cluster()).brokers]
    brokers = hash_order([*known, *(node for _, replicas in listed for node in replicas)], integer_hash)
    shown = ",".join(map(str, brokers))
    print(f"Clearing broker-level throttles on broker{'' if len(brokers) == 1 else 's'} {shown}")
    for broker in brokers:
        await session.admin.incremental_alter_configs(
            str(broker), dict.fromkeys(BROKER_KEYS), ResourceType.BROKER
        )
    topics = string_order(tp.topic for tp, _ in listed)
    print(f"Clearing topic-level throttles on topic{'' if len(topics) == 1 else 's'} {','.join(topics)}")
    for topic in topics:
        await session.admin.incremental_alter_configs(topic, dict.fromkeys((LEADERS, FOLLOWERS)))


async def set_throttle(
    session: Session,
    under_way: Mapping[TopicPartition, OngoingReassignment],
    proposed: Assignment,
    current: Assignment,
    rate: int,
) -> None:
    """Throttle what moves: the brokers that send or receive, for these replicas."""
    moves = {
        tp: _sources_and_destinations(tp, under_way, proposed, current) for tp in {*under_way, *proposed}
    }
    for topic in {tp.topic for tp in moves}:
        mine = [(tp.partition, *each) for tp, each in moves.items() if tp.topic == topic]
        leaders = {f"{number}:{node}" for number, sources, _ in mine for node in sources}
        followers = {f"{number}:{node}" for number, _, destinations in mine for node in destinations}
        await session.admin.incremental_alter_configs(
            topic, {LEADERS: ",".join(sorted(leaders)), FOLLOWERS: ",".join(sorted(followers))}
        )
    for broker in sorted({node for each in moves.values() for nodes in each for node in nodes}):
        await session.admin.incremental_alter_configs(
            str(broker), dict.fromkeys(BROKER_KEYS[:2], str(rate)), ResourceType.BROKER
        )
    print(f"The inter-broker throttle limit was set to {rate} B/s")


async def set_folders_throttle(session: Session, brokers: Iterable[int], rate: int) -> None:
    """Throttle what these brokers copy between their log folders."""
    for broker in sorted(brokers):
        await session.admin.incremental_alter_configs(
            str(broker), {BROKER_KEYS[2]: str(rate)}, ResourceType.BROKER
        )
    print(f"The replica-alter-dir throttle limit was set to {rate} B/s")


def _sources_and_destinations(
    tp: TopicPartition,
    under_way: Mapping[TopicPartition, OngoingReassignment],
    proposed: Assignment,
    current: Assignment,
) -> tuple[set[int], set[int]]:
    """The brokers that have the partition, and those that are to get it."""
    if tp in under_way:
        sources = set(under_way[tp].replicas) - set(under_way[tp].adding)
        wanted = set(proposed.get(tp, under_way[tp].adding))
    else:
        sources, wanted = set(current[tp]), set(proposed[tp])
    return sources, wanted - sources
