"""The throttles of a reassignment (KIP-73): the maximum rate, in bytes/s, at which replicas are copied.

Throttles are settings: brokers have the rate, topics the throttled replicas. The caller that sets them
removes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from kafka_client import OngoingReassignment, ResourceType, TopicPartition
from millstream.terminal.session import Session

BROKER_KEYS = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"

Replicas: TypeAlias = Mapping[TopicPartition, Sequence[int]]
Copies: TypeAlias = Mapping[TopicPartition, tuple[Collection[int], Collection[int]]]
"""For each partition the brokers that send it, and those that receive it."""


def copies(
    under_way: Mapping[TopicPartition, OngoingReassignment], proposed: Replicas, current: Replicas
) -> Copies:
    """Return the copies of the proposed moves and of those under way."""
    return {tp: _copied(tp, under_way, proposed, current) for tp in {*under_way, *proposed}}


def _copied(
    tp: TopicPartition,
    under_way: Mapping[TopicPartition, OngoingReassignment],
    proposed: Replicas,
    current: Replicas,
) -> tuple[set[int], set[int]]:
    if tp in under_way:
        sources = set(under_way[tp].replicas) - set(under_way[tp].adding)
        targets = set(proposed.get(tp, under_way[tp].adding))
    else:
        sources, targets = set(current[tp]), set(proposed[tp])
    return sources, targets - sources


async def set_throttles(session: Session, copied: Copies, rate: int) -> None:
    """Throttle the copies, on the brokers that send or receive them."""
    for topic in sorted({tp.topic for tp in copied}):
        mine = [(tp.partition, *each) for tp, each in copied.items() if tp.topic == topic]
        leaders = {f"{number}:{node}" for number, sources, _ in mine for node in sources}
        followers = {f"{number}:{node}" for number, _, destinations in mine for node in destinations}
        await session.admin.incremental_alter_configs(
            topic, {LEADERS: ",".join(sorted(leaders)), FOLLOWERS: ",".join(sorted(followers))}
        )
    for broker in sorted({node for each in copied.values() for nodes in each for node in nodes}):
        await session.admin.incremental_alter_configs(
            str(broker), dict.fromkeys(BROKER_KEYS, str(rate)), ResourceType.BROKER
        )


async def clear_throttles(
    session: Session, brokers: Iterable[int], topics: Iterable[str], keys: Iterable[str] = BROKER_KEYS
) -> None:
    """Remove the throttles of these brokers and topics, if they have any."""
    settings = dict.fromkeys(keys)
    for broker in brokers:
        await session.admin.incremental_alter_configs(str(broker), settings, ResourceType.BROKER)
    for topic in topics:
        await session.admin.incremental_alter_configs(topic, dict.fromkeys((LEADERS, FOLLOWERS)))
