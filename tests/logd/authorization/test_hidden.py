"""Names, ids and operations that a peer without permissions does not see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_client.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from kafka_client.errors import ErrorCode
from kafka_client.records import NewRecord
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_client.wire.messages.describe_cluster import DescribeClusterRequest
from kafka_client.wire.messages.describe_groups import DescribeGroupsRequest
from kafka_client.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.list_groups import ListGroupsRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.support.logged_in import LoggedInClient

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def topics(broker: object) -> dict[str, bytes]:
    """Ids of topics, by name."""
    return {}


@pytest.fixture(autouse=True)
def created(root: LoggedInClient, topics: dict[str, bytes]) -> Iterator[None]:
    """Create the topics `open` and `secret` once."""
    if not topics:
        new = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("open", "secret")
        ]
        for topic in root.request(CreateTopicsRequest(topics=new), 7).topics:
            assert topic.error_code == 0, topic.error_message
            topics[topic.name] = topic.topic_id
    return


def test_all_topics(root: LoggedInClient, alice: LoggedInClient) -> None:
    for version, everything in ((0, []), (1, None), (12, None)):
        assert alice.request(MetadataRequest(topics=everything), version).topics == []
    assert alice.request(DescribeTopicPartitionsRequest(), 0).topics == []
    root.allow(TOPIC, "open", Operation.WRITE)
    for version, everything in ((0, []), (1, None), (12, None)):
        answer = alice.request(MetadataRequest(topics=everything), version)
        assert [topic.name for topic in answer.topics] == ["open"]
    page = alice.request(DescribeTopicPartitionsRequest(response_partition_limit=1), 0)
    assert ([topic.name for topic in page.topics], page.next_cursor) == (["open"], None)
    root.allow(TOPIC, "open", Operation.DESCRIBE, permission=Permission.DENY)
    assert alice.request(MetadataRequest(topics=None), 12).topics == []


def test_topics_by_name(root: LoggedInClient, alice: LoggedInClient) -> None:
    root.allow(TOPIC, "op", Operation.READ, pattern=PatternType.PREFIXED)
    selection = [MetadataRequestTopic(name=name) for name in ("open", "secret", "absent")]
    for version in (0, 1, 9, 12):
        request = MetadataRequest(topics=selection, allow_auto_topic_creation=False)
        answer = {topic.name: topic for topic in alice.request(request, version).topics}
        assert {name: topic.error_code for name, topic in answer.items()} == {
            "open": 0,
            "secret": REFUSED,
            "absent": REFUSED,
        }
        assert answer["secret"].partitions == []


def test_topics_by_id(root: LoggedInClient, alice: LoggedInClient, topics: dict[str, bytes]) -> None:
    root.allow(TOPIC, "open", Operation.DESCRIBE)
    selection = [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in topics.values()]
    answer = {topic.topic_id: topic for topic in alice.request(MetadataRequest(topics=selection), 12).topics}
    assert answer[topics["open"]].name == "open"
    secret = answer[topics["secret"]]
    assert (secret.name, secret.error_code, secret.partitions) == (None, ErrorCode.UNKNOWN_TOPIC_ID, [])
    assert alice.fetch(topics["secret"], version=13).error_code == REFUSED
    assert alice.produce(topics["secret"], [record(b"v")], version=13).error_code == REFUSED
    states = [DeleteTopicState(topic_id=topic_id) for topic_id in topics.values()]
    deleted = alice.request(DeleteTopicsRequest(topics=states), 6).responses
    assert {(each.topic_id, each.name, each.error_code) for each in deleted} == {
        (topics["open"], "open", REFUSED),
        (topics["secret"], None, REFUSED),
    }


def record(value: bytes) -> NewRecord:
    return (0, None, value, ())


def test_records(root: LoggedInClient, alice: LoggedInClient) -> None:
    root.allow(TOPIC, "open", Operation.WRITE)
    assert alice.produce("open", [record(b"v")]).error_code == 0
    assert alice.produce("secret", [record(b"v")]).error_code == REFUSED
    assert alice.fetch("open").error_code == REFUSED
    root.allow(TOPIC, "open", Operation.READ)
    assert alice.fetch("open").records
    root.forget()
    assert alice.fetch("open").error_code == REFUSED
    alice.send_produce("secret", [record(b"v")], acks=0)
    assert alice.is_closed_by_peer()


def test_topics_that_are_created_when_asked_for(root: LoggedInClient, alice: LoggedInClient) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="automatic")])
    root.allow(TOPIC, "automatic", Operation.DESCRIBE)
    assert alice.request(request, 12).topics[0].error_code == REFUSED
    root.allow(TOPIC, "automatic", Operation.CREATE)
    assert alice.request(request, 12).topics[0].error_code == 0


def test_topics_that_the_cluster_may_create(root: LoggedInClient, alice: LoggedInClient) -> None:
    root.allow(CLUSTER, CLUSTER_NAME, Operation.CREATE)
    new = [CreatableTopic(name="by-cluster", num_partitions=1, replication_factor=1)]
    created = alice.request(CreateTopicsRequest(topics=new), 7).topics[0]
    assert (created.error_code, created.topic_config_error_code) == (0, REFUSED)
    assert (created.num_partitions, created.configs) == (-1, [])


def test_operations(root: LoggedInClient, alice: LoggedInClient) -> None:
    root.allow(TOPIC, "open", Operation.READ)
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="open")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = alice.request(request, 9)
    assert answer.topics[0].topic_authorized_operations == bits(Operation.READ, Operation.DESCRIBE)
    assert answer.cluster_authorized_operations == 0
    described = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert alice.request(described, 1).cluster_authorized_operations == 0
    root.allow(CLUSTER, CLUSTER_NAME, Operation.ALTER)
    assert alice.request(described, 1).cluster_authorized_operations == bits(
        Operation.ALTER, Operation.DESCRIBE
    )


def bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


def test_groups(root: LoggedInClient, alice: LoggedInClient) -> None:
    topic = OffsetCommitRequestTopic(
        name="secret", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
    )
    root.request(OffsetCommitRequest(group_id="readers", topics=[topic]), 8)
    assert alice.request(ListGroupsRequest(), 4).groups == []
    root.allow(GROUP, "readers", Operation.READ)
    assert [group.group_id for group in alice.request(ListGroupsRequest(), 4).groups] == ["readers"]
    selection = DescribeGroupsRequest(groups=["readers"], include_authorized_operations=True)
    (group,) = alice.request(selection, 5).groups
    assert group.authorized_operations == bits(Operation.READ, Operation.DESCRIBE)
    every = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="readers", topics=None)])
    assert alice.request(every, 8).groups[0].topics == []
    root.allow(TOPIC, "secret", Operation.DESCRIBE)
    assert [each.name for each in alice.request(every, 8).groups[0].topics] == ["secret"]


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize(
    ("key_type", "code"),
    [(0, ErrorCode.GROUP_AUTHORIZATION_FAILED), (1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)],
)
def test_coordinators(alice: LoggedInClient, version: int, key_type: int, code: ErrorCode) -> None:
    if version == 0 and key_type:
        return  # version 0 is for groups only
    request = FindCoordinatorRequest(key="k", key_type=key_type, coordinator_keys=["k"])
    answer = alice.request(request, version)
    assert (answer.coordinators[0] if version >= 4 else answer).error_code == code


def test_an_idempotent_producer(root: LoggedInClient, alice: LoggedInClient) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    assert alice.request(request, 4).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    root.allow(TOPIC, "some", Operation.WRITE, pattern=PatternType.PREFIXED)
    assert alice.request(request, 4).error_code == 0
    root.forget()
    root.allow(CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE)
    assert alice.request(request, 4).error_code == 0
