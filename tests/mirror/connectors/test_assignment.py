"""Work split over tasks as in Kafka's MirrorSourceConnectorTest and MirrorCheckpointConnectorTest."""

import pytest

from kafka_client import TopicPartition
from mirror.connectors.assignment import (
    groups_by_task,
    parse_partitions,
    partitions_by_task,
    partitions_text,
)

TWELVE = [
    TopicPartition(topic, n) for topic, count in (("t0", 8), ("t1", 2), ("t2", 2)) for n in range(count)
]


@pytest.mark.parametrize(
    ("max_tasks", "shares"),
    [
        (1, [partitions_text(TWELVE)]),
        (3, ["t0-0,t0-3,t0-6,t1-1", "t0-1,t0-4,t0-7,t2-0", "t0-2,t0-5,t1-0,t2-1"]),
        (20, [partitions_text([tp]) for tp in TWELVE]),
    ],
)
def test_partitions_go_round_robin(max_tasks, shares):
    assert [partitions_text(share) for share in partitions_by_task(TWELVE, max_tasks)] == shares


def test_no_partitions_make_no_tasks():
    assert partitions_by_task([], 3) == []
    assert groups_by_task([], 3) == []


def test_partitions_are_read_back():
    tps = [TopicPartition("a-b", 0), TopicPartition("c.d", 12)]
    assert parse_partitions(partitions_text(tps)) == tps
    assert parse_partitions("") == []


@pytest.mark.parametrize(
    ("max_tasks", "sizes"), [(1, [5]), (2, [3, 2]), (3, [2, 2, 1]), (9, [1, 1, 1, 1, 1])]
)
def test_groups_are_split_into_consecutive_parts(max_tasks, sizes):
    shares = groups_by_task(list("abcde"), max_tasks)
    assert [len(share) for share in shares] == sizes
    assert "".join(group for share in shares for group in share) == "abcde"
