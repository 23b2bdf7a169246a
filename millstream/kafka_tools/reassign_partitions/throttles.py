"""The throttles of replication that a reassignment sets, and takes away when it is done, in Kafka's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_client import OngoingReassignment, ResourceType, TopicPartition
from millstream.kafka_tools.reassign_partitions.plan import Assignment
from millstream.terminal import throttles
from millstream.terminal.session import Session

FOLDERS_KEY = "replica.alter.log.dirs.io.max.bytes.per.second"


async def clear_throttles(session: Session, moves: Iterable[tuple[TopicPartition, list[int]]]) -> None:
    """Take away those of all brokers, and of the topics that moved."""
    listed = list(moves)
    registered = [broker.node_id for broker in (await session.admin.describe_cluster()).brokers]
    brokers = sorted({*registered, *(node for _, replicas in listed for node in replicas)})
    shown = ",".join(map(str, brokers))
    print(f"Clearing broker-level throttles on broker{'' if len(brokers) == 1 else 's'} {shown}")
    await throttles.clear_throttles(session, brokers, (), (*throttles.BROKER_KEYS, FOLDERS_KEY))
    topics = sorted({tp.topic for tp, _ in listed})
    print(f"Clearing topic-level throttles on topic{'' if len(topics) == 1 else 's'} {','.join(topics)}")
    await throttles.clear_throttles(session, (), topics)


async def set_throttle(
    session: Session,
    under_way: Mapping[TopicPartition, OngoingReassignment],
    proposed: Assignment,
    current: Assignment,
    rate: int,
) -> None:
    """Throttle what moves: the brokers that send or receive, for these replicas."""
    await throttles.set_throttles(session, throttles.copies(under_way, proposed, current), rate)
    print(f"The inter-broker throttle limit was set to {rate} B/s")


async def set_folders_throttle(session: Session, brokers: Iterable[int], rate: int) -> None:
    """Throttle what these brokers copy between their log folders."""
    for broker in sorted(brokers):
        await session.admin.incremental_alter_configs(
            str(broker), {FOLDERS_KEY: str(rate)}, ResourceType.BROKER
        )
    print(f"The replica-alter-dir throttle limit was set to {rate} B/s")
