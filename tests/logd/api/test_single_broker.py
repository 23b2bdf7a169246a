"""APIs that have little to do on one broker without an authorizer: the expected answers are Apache Kafka
4.4's.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kafka_client.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafka_client.wire.messages.describe_acls import DescribeAclsRequest
from kafka_client.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.support.raw_client import RawClient

Make = Callable[..., str]
NOT_NEEDED = (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("version", "election_type"), [(0, 0), (1, 0), (2, 0), (2, 1)])
def test_leaders_are_elected_already(
    client: RawClient, make_topic: Make, version: int, election_type: int
) -> None:
    name = make_topic(partitions=2)
    rows = [
        TopicPartitions(topic=name, partitions=[1, 7, -1]),
        TopicPartitions(topic="absent", partitions=[0]),
    ]
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=rows)
    answer = client.request(request, version)
    assert answer.error_code == 0
    assert [topic.topic for topic in answer.replica_election_results] == [name, "absent"]
    own, absent = (
        [(result.partition_id, result.error_code, result.error_message) for result in topic.partition_result]
        for topic in answer.replica_election_results
    )
    assert own == [
        (1, *NOT_NEEDED),
        (7, UNKNOWN, f"No such partition as {name}-7"),
        (-1, UNKNOWN, f"No such partition as {name}--1"),
    ]
    assert absent == [(0, UNKNOWN, "No such topic as absent")]


@pytest.mark.parametrize("topics", [None, []])
def test_of_all_partitions_only_elected_leaders_are_told(
    client: RawClient, topics: list[TopicPartitions] | None
) -> None:
    answer = client.request(ElectLeadersRequest(topic_partitions=topics), 2)
    assert (answer.error_code, answer.replica_election_results) == (0, [])


def test_an_election_type_that_does_not_exist(client: RawClient) -> None:
    topics = [TopicPartitions(topic="absent", partitions=[0])]
    answer = client.request(ElectLeadersRequest(election_type=5, topic_partitions=topics), 2)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    result = answer.replica_election_results[0].partition_result[0]
    assert (result.error_code, result.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Unknown election type 5",
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_without_an_authorizer_there_are_no_acls(client: RawClient, version: int) -> None:
    described = client.request(DescribeAclsRequest(resource_type_filter=1), version)
    created = client.request(CreateAclsRequest(creations=[AclCreation(resource_name="t")] * 2), version)
    deleted = client.request(DeleteAclsRequest(filters=[DeleteAclsFilter(resource_type_filter=1)]), version)
    assert len(created.results) == 2
    for result in (described, *created.results, *deleted.filter_results):
        assert result.error_code == ErrorCode.SECURITY_DISABLED
        assert "No Authorizer is configured" in result.error_message
