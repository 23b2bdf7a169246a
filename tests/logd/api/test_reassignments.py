"""ListPartitionReassignments and AlterPartitionReassignments: the answers expected are Apache Kafka 4.4's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafka_client.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.raw_client import RawClient

OF_BROKERS = "The manual partition assignment includes {}"
UNREGISTERED = OF_BROKERS.format("broker {}, but no such broker is registered.")
TWICE = OF_BROKERS.format("the broker {} more than once.")

Answer = tuple[int, str | None]


def alter(
    client: RawClient, topic: str, *moves: tuple[int, list[int] | None], version: int = 1
) -> list[Answer]:
    partitions = [ReassignablePartition(partition_index=index, replicas=ids) for index, ids in moves]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=partitions)]
    )
    answer = client.request(request, version)
    assert (answer.error_code, answer.error_message) == (0, None)
    (result,) = answer.responses
    assert result.name == topic
    assert [row.partition_index for row in result.partitions] == [index for index, _ in moves]
    return [(row.error_code, row.error_message) for row in result.partitions]


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    return make_topic(partitions=2)


def test_nothing_is_under_way(client: RawClient, topic: str) -> None:
    named = [(topic, [0, 1]), (topic, [7]), (topic, []), ("unknown", [0]), ("no name!", [0])]
    some = [ListPartitionReassignmentsTopics(name=name, partition_indexes=rows) for name, rows in named]
    for topics in (None, [], some):
        answer = client.request(ListPartitionReassignmentsRequest(topics=topics), 0)
        assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])


@pytest.mark.parametrize("version", [0, 1])
def test_to_where_it_is(client: RawClient, topic: str, version: int) -> None:
    assert alter(client, topic, (0, [1]), (1, [1]), version=version) == [(0, None)] * 2


def test_nothing_to_cancel(client: RawClient, topic: str) -> None:
    assert alter(client, topic, (0, None)) == [(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)]


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ([], OF_BROKERS.format("an empty replica list.")),
        ([2], UNREGISTERED.format(2)),
        ([1, 2], UNREGISTERED.format(2)),
        ([3, 2], UNREGISTERED.format(2)),
        ([5, -2, 1], UNREGISTERED.format(-2)),
        ([2, 2], UNREGISTERED.format(2)),
        ([1, 1], TWICE.format(1)),
        ([2, 1, 1], TWICE.format(1)),
    ],
)
def test_replicas_that_cannot_be(client: RawClient, topic: str, replicas: list[int], message: str) -> None:
    refused = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    assert alter(client, topic, (0, replicas), (1, [1])) == [refused, (0, None)]


def test_what_does_not_exist(client: RawClient, topic: str) -> None:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(client, topic, (7, None), (-1, [2])) == [
        (code, f"Unable to find partition {topic}:7."),
        (code, f"Unable to find partition {topic}:-1."),
    ]
    assert alter(client, "unknown", (0, [1])) == [(code, "Unable to find a topic named unknown.")]


def test_whether_the_replication_factor_may_change_comes_back(client: RawClient) -> None:
    for allowed in (True, False):
        request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=allowed)
        assert client.request(request, 1).allow_replication_factor_change is allowed
