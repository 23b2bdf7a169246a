"""Metadata, CreateTopics, DeleteTopics, CreatePartitions, DescribeCluster, ApiVersions over the wire."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.api_versions import ApiVersionsRequest
from kafka_client.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafka_client.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_client.wire.messages.describe_cluster import DescribeClusterRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from logd.api.table import APIS
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

Name = Callable[..., str]


def create(client: RawClient, topic: CreatableTopic, *, validate_only: bool = False) -> CreatableTopicResult:
    request = CreateTopicsRequest(topics=[topic], validate_only=validate_only)
    result: CreatableTopicResult = client.request(request, 7).topics[0]
    return result


def metadata(
    client: RawClient, name: str, *, version: int = 12, create: bool = False
) -> MetadataResponseTopic:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)
    topic: MetadataResponseTopic = client.request(request, version).topics[0]
    return topic


def new_topic(name: str, partitions: int = 1, **more: object) -> CreatableTopic:
    fields = {"replication_factor": 1, **more}
    return CreatableTopic(name=name, num_partitions=partitions, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_the_table(client: RawClient, version: int) -> None:
    response = client.request(
        ApiVersionsRequest(client_software_name="raw", client_software_version="1"), version
    )
    assert response.error_code == 0
    ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert ranges == {api.key: (api.first, api.last) for api in APIS.values()}
    assert ranges[0][0] == 0, "librdkafka turns compression off otherwise (KAFKA-18659)"


def test_api_versions_of_the_future_is_answered_in_version_0(client: RawClient) -> None:
    client.send(b"\0\0\0\x0c" + b"\0\x12\0\x63" + b"\0\0\0\x07" + b"\xff\xff" + b"\1\1")
    response = client.receive(18, 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert len(response.api_keys) == len(APIS)


def test_an_odd_software_name_is_refused(client: RawClient) -> None:
    request = ApiVersionsRequest(client_software_name="-", client_software_version="1")
    assert client.request(request, 3).error_code == ErrorCode.INVALID_REQUEST


def test_created_described_grown_and_deleted(client: RawClient, new_name: Name) -> None:
    name = new_name()
    created = create(client, new_topic(name, 2))
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 2, 1)
    assert created.configs
    described = metadata(client, name)
    assert described.error_code == 0
    assert described.topic_id == created.topic_id
    assert [partition.partition_index for partition in described.partitions] == [0, 1]
    assert all(partition.leader_id == 1 and partition.isr_nodes == [1] for partition in described.partitions)

    grow = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=5, assignments=None)])
    assert client.request(grow, 3).results[0].error_code == 0
    assert len(metadata(client, name).partitions) == 5

    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=created.topic_id)])
    deleted = client.request(by_id, 6).responses[0]
    assert (deleted.error_code, deleted.name) == (0, name)
    assert metadata(client, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert create(client, new_topic(name)).topic_id != created.topic_id


@pytest.mark.parametrize(
    ("topic", "code", "says"),
    [
        (new_topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "needs a name"),
        (new_topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'..'"),
        (new_topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "only ASCII letters"),
        (new_topic("n" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "at most 249"),
        (new_topic("zero", 0), ErrorCode.INVALID_PARTITIONS, "1 to 10000"),
        (new_topic("rf", replication_factor=3), ErrorCode.INVALID_REPLICATION_FACTOR, "1 broker"),
        (
            new_topic("config", configs=[CreatableTopicConfig(name="segment.byte", value="1")]),
            ErrorCode.INVALID_CONFIG,
            "segment.bytes",
        ),
        (
            new_topic("config", configs=[CreatableTopicConfig(name="segment.bytes", value="x")]),
            ErrorCode.INVALID_CONFIG,
            "segment.bytes=x",
        ),
        (
            new_topic(
                "assigned",
                -1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[2])],
            ),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "only broker 1",
        ),
        (
            new_topic(
                "assigned",
                1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
            ),
            ErrorCode.INVALID_REQUEST,
            "must be -1",
        ),
    ],
)
def test_a_topic_that_cannot_be_created(
    client: RawClient, topic: CreatableTopic, code: ErrorCode, says: str
) -> None:
    for validate_only in (True, False):
        result = create(client, topic, validate_only=validate_only)
        assert result.error_code == code
        assert says in (result.error_message or "")


def test_validate_only_creates_nothing(client: RawClient, new_name: Name) -> None:
    name = new_name()
    assert create(client, new_topic(name), validate_only=True).error_code == 0
    assert metadata(client, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_twice_in_a_request_or_there_already(client: RawClient, new_name: Name) -> None:
    name = new_name()
    both = client.request(CreateTopicsRequest(topics=[new_topic(name), new_topic(name)]), 7)
    assert [result.error_code for result in both.topics] == [ErrorCode.INVALID_REQUEST]
    assert create(client, new_topic(name)).error_code == 0
    assert create(client, new_topic(name)).error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_differ_in_dots_and_underscores_collide(client: RawClient, new_name: Name) -> None:
    name = new_name("dots.and")
    assert create(client, new_topic(name)).error_code == 0
    collides = create(client, new_topic(name.replace(".", "_")))
    assert collides.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert name in (collides.error_message or "")


def test_defaults_fill_in_partitions_and_replicas(client: RawClient, new_name: Name) -> None:
    result = create(client, CreatableTopic(name=new_name(), num_partitions=-1, replication_factor=-1))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 1, 1)


def test_metadata_creates_a_topic_when_asked_to(client: RawClient, new_name: Name) -> None:
    name = new_name()
    assert metadata(client, name, create=False).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    created = metadata(client, name, create=True)
    assert created.error_code == 0
    assert len(created.partitions) == 1
    assert metadata(client, "no spaces", create=True).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", [10, 11])
def test_a_topic_asked_for_by_id_too_early_spoils_the_request(
    client: RawClient, new_name: Name, version: int
) -> None:
    """Requests that name a topic by id in these versions get INVALID_REQUEST.

    The null name was answered by a null name, which these versions cannot encode: no response was sent.
    """
    names = [new_name(), new_name()]
    topic_row = client.request(MetadataRequest(topics=[MetadataRequestTopic(name=names[0])]), 12).topics[0]
    for by_id in (MetadataRequestTopic(topic_id=topic_row.topic_id), MetadataRequestTopic(name=None)):
        other = MetadataRequestTopic(name=names[1])
        rows = client.request(MetadataRequest(topics=[by_id, other]), version).topics
        assert [(topic.error_code, topic.name, topic.topic_id) for topic in rows] == [
            (ErrorCode.INVALID_REQUEST, "", by_id.topic_id),
            (ErrorCode.INVALID_REQUEST, names[1], bytes(16)),
        ]
    assert names[1] not in [topic.name for topic in client.request(MetadataRequest(topics=None), 12).topics]


def test_which_topics_an_empty_or_a_null_list_means(client: RawClient, new_name: Name) -> None:
    name = new_name()
    create(client, new_topic(name))
    empty, null = MetadataRequest(topics=[]), MetadataRequest(topics=None)
    assert name in [topic.name for topic in client.request(empty, 0).topics]
    assert client.request(empty, 1).topics == []
    for version in range(1, 14):
        assert name in [topic.name for topic in client.request(null, version).topics]


def test_topics_by_id(client: RawClient, new_name: Name) -> None:
    name = new_name()
    topic_id = create(client, new_topic(name)).topic_id
    rows = [MetadataRequestTopic(topic_id=topic_id), MetadataRequestTopic(topic_id=b"?" * 16)]
    present, unknown = client.request(MetadataRequest(topics=rows), 12).topics
    assert (present.error_code, present.name) == (0, name)
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


def test_authorized_operations_come_only_when_asked_for(client: RawClient, new_name: Name) -> None:
    name = new_name()
    create(client, new_topic(name))
    assert metadata(client, name).topic_authorized_operations == -(2**31)
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    response = client.request(request, 10)
    assert response.topics[0].topic_authorized_operations == 0b1101_1111_1000
    assert response.cluster_authorized_operations > 0


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (10_001, None, ErrorCode.POLICY_VIOLATION),
        (4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1]], ErrorCode.NONE),
    ],
)
def test_growing(
    client: RawClient, new_name: Name, count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    name = new_name()
    create(client, new_topic(name, 2))
    rows = assignments and [CreatePartitionsAssignment(broker_ids=row) for row in assignments]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=rows)
    request = CreatePartitionsRequest(topics=[topic], validate_only=True)
    assert client.request(request, 2).results[0].error_code == code
    assert len(metadata(client, name).partitions) == 2


def test_deleting_what_is_not_there(client: RawClient) -> None:
    by_name = client.request(DeleteTopicsRequest(topic_names=["missing"]), 5).responses[0]
    assert by_name.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=b"?" * 16)])
    assert client.request(by_id, 6).responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    both = DeleteTopicsRequest(topics=[DeleteTopicState(name="x", topic_id=b"?" * 16)])
    assert client.request(both, 6).responses[0].error_code == ErrorCode.INVALID_REQUEST


def test_the_cluster(client: RawClient, logd: LogdProcess) -> None:
    response = client.request(DescribeClusterRequest(), 2)
    assert response.cluster_id in logd.log
    assert response.controller_id == 1
    assert [(broker.broker_id, broker.host, broker.port) for broker in response.brokers] == [
        (1, "127.0.0.1", logd.port)
    ]
    controllers = client.request(DescribeClusterRequest(endpoint_type=2), 1)
    assert controllers.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
