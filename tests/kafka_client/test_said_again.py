"""A fetch session names a partition again after an error, though its offset has not changed.

The simulation of clusters showed the bug. A follower asked a broker that did not know yet that it leads the
partition, was refused and asked again. Its offset was the same, so the session did not name the partition.
But a leader reads a follower's progress from named partitions only: the follower joined the ISR at the next
write, not before.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafka_client.fetcher.session import FetchSession
from kafka_client.topic_partition import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def position() -> Any:
    return SimpleNamespace(
        fetch_offset=5, leader_epoch=2, fetch_epoch=1, topic_id=bytes(16), version=0, own_log_start=0
    )


def named(session: FetchSession[Any], positions: dict[TopicPartition, Any], *touched: TopicPartition) -> Any:
    changes = session.changes(positions, touched, by_topic_ids=True)
    session.answered(7)
    return [partition.partition for topic in changes.topics for partition in topic.partitions]


def test_said_again() -> None:
    session: FetchSession[Any] = FetchSession(is_wanted=True, partition_max_bytes=1)
    positions = {T0: position(), T1: position()}
    assert named(session, positions) == [0, 1]
    assert named(session, positions, T0, T1) == []
    session.repeat(T0)
    assert named(session, positions, T1) == [], "repeated only once the partition is looked at again"
    assert named(session, positions, T0, T1) == [0]
    assert named(session, positions, T0, T1) == [], "once"


def test_not_wanted_meanwhile() -> None:
    session: FetchSession[Any] = FetchSession(is_wanted=True, partition_max_bytes=1)
    positions = {T0: position()}
    named(session, positions)
    session.repeat(T0)
    forgotten = session.changes({}, [T0], by_topic_ids=True).forgotten
    assert [topic.partitions for topic in forgotten] == [[0]]
    assert named(session, positions, T0) == [0]
    assert named(session, positions, T0) == []
