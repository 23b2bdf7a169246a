"""The replication throttles that a reassignment sets and, once it has ended, removes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_client import OngoingReassignment, ResourceType, TopicPartition
from millstream.kafka_tools.reassign_partitions.plan import Assignment
from millstream.terminal import throttles
from millstream.terminal.session import Session

FOLDERS_KEY = "replica.alter.log.dirs.io.max.bytes.per.second"


async def clear_throttles(session: Session, moves: Iterable[tuple[TopicPartition, list[int]]]) -> None:
    """Remove the throttles of all brokers, and of the topics of the moves."""
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
    """Throttle the moving replicas on the brokers that send or receive them, to `rate` bytes per second."""
    await throttles.set_throttles(session, throttles.copies(under_way, proposed, current), rate)
    print(f"The inter-broker throttle limit was set to {rate} B/s")


async def set_folders_throttle(session: Session, brokers: Iterable[int], rate: int) -> None:
    """Throttle these brokers' copies between log directories, to `rate` bytes per second."""
    for broker in sorted(brokers):
        await session.admin.incremental_alter_configs(
            str(broker), {FOLDERS_KEY: str(rate)}, ResourceType.BROKER
        )
    print(f"The replica-alter-dir throttle limit was set to {rate} B/s")
