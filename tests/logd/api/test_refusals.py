"""Requests that Apache Kafka refuses, or takes once: logd and Apache Kafka give the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch
from kafka_client.wire.messages.alter_configs import AlterableConfig as ReplacedConfig
from kafka_client.wire.messages.alter_configs import AlterConfigsRequest
from kafka_client.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from kafka_client.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafka_client.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_client.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_client.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka_client.wire.produce import encode_produce_request
from tests.support import java
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

TOPIC, BROKER = 2, 4
NONE = ErrorCode.NONE
INVALID = ErrorCode.INVALID_REQUEST
Make = Callable[..., str]


@pytest.fixture(scope="module", params=["logd", pytest.param("kafka", marks=[deep, java.needs_kafka])])
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("refusals")
    with LogdProcess(folder) if request.param == "logd" else ApacheKafka(folder) as broker:
        yield broker.port


@pytest.fixture
def client(port: int) -> Iterator[RawClient]:
    with RawClient(port) as raw:
        yield raw


def created(client: RawClient, name: str, **configs: str) -> int:
    """Create a topic and return the error code."""
    rows = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=rows)
    return int(client.request(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code)


def topic_id(client: RawClient, name: str) -> bytes:
    """Return a topic's id once the broker has it; empty if there is no such topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = client.request(request, 12).topics
    is_known = topic.error_code == NONE and all(not each.error_code for each in topic.partitions)
    return bytes(topic.topic_id) if is_known else b""


@pytest.fixture
def make_topic(client: RawClient, new_name: Callable[..., str]) -> Make:
    def make() -> str:
        name = new_name()
        assert created(client, name) == NONE
        wait_for(lambda: topic_id(client, name))
        return name

    return make


def deleted(client: RawClient, *topics: DeleteTopicState, version: int = 6) -> set[tuple[str | None, int]]:
    """Delete topics and return the names and error codes of the response."""
    request = DeleteTopicsRequest(topics=list(topics), timeout_ms=60_000)
    if version < 6:
        request = DeleteTopicsRequest(topic_names=[topic.name or "" for topic in topics], timeout_ms=60_000)
    responses = client.request(request, version).responses
    assert len({(each.name, each.topic_id) for each in responses}) == len(responses)
    return {(each.name, each.error_code) for each in responses}


@pytest.mark.parametrize("version", [1, 5, 6])
def test_a_topic_named_twice_is_not_deleted(client: RawClient, make_topic: Make, version: int) -> None:
    twice, once = make_topic(), make_topic()
    states = [DeleteTopicState(name=name) for name in (twice, once, twice)]
    assert deleted(client, *states, version=version) == {(twice, INVALID), (once, NONE)}
    wait_for(lambda: not topic_id(client, once))
    assert topic_id(client, twice)


def test_a_topic_named_twice_by_its_id_is_not_deleted(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    by_id = DeleteTopicState(topic_id=topic_id(client, name))
    assert deleted(client, by_id, by_id) == {(None, INVALID)}
    assert deleted(client, by_id, DeleteTopicState(name=name)) == {(name, INVALID)}
    assert topic_id(client, name)
    assert deleted(client, by_id) == {(name, NONE)}


def altered(client: RawClient, *resources: tuple[int, str, str, str | None]) -> list[int]:
    """Send IncrementalAlterConfigs and return the error codes."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, value=value)]
            )
            for kind, name, key, value in resources
        ]
    )
    return [response.error_code for response in client.request(request, 1).responses]


def setting(client: RawClient, name: str, key: str) -> str:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=[key])
    (result,) = client.request(DescribeConfigsRequest(resources=[resource]), 4).results
    return str(result.configs[0].value)


def test_a_resource_named_twice_is_not_altered(client: RawClient, make_topic: Make) -> None:
    twice, once = make_topic(), make_topic()
    before = setting(client, twice, "segment.ms")
    codes = altered(
        client,
        (TOPIC, twice, "segment.ms", "1000"),
        (TOPIC, twice, "retention.ms", "2000"),
        (TOPIC, once, "segment.ms", "3000"),
    )
    assert sorted(codes) == [NONE, INVALID, INVALID]
    wait_for(lambda: setting(client, once, "segment.ms") == "3000")
    assert setting(client, twice, "segment.ms") == before
    assert altered(client, *[(BROKER, "", "log.retention.ms", "100000")] * 2) == [INVALID] * 2
    assert altered(client, *[(BROKER, "1", "log.retention.ms", "100000")] * 2) == [INVALID] * 2


def test_a_resource_named_twice_is_not_replaced(logd: LogdProcess, new_name: Callable[..., str]) -> None:
    """AlterConfigs with a resource twice changes nothing; Apache Kafka 4.4 never answers it."""
    name = new_name()
    with RawClient(logd.port) as client:
        assert created(client, name) == NONE
        resource = ReplacedResource(
            resource_type=TOPIC, resource_name=name, configs=[ReplacedConfig(name="segment.ms", value="1000")]
        )
        request = AlterConfigsRequest(resources=[resource, resource])
        assert [each.error_code for each in client.request(request, 2).responses] == [INVALID] * 2
        assert setting(client, name, "segment.ms") == "604800000"


@pytest.mark.parametrize(
    ("kind", "key", "value", "code"),
    [
        (TOPIC, "remote.storage.enable", "true", ErrorCode.INVALID_CONFIG),
        (TOPIC, "remote.storage.enable", "false", NONE),
        (TOPIC, "segment.ms", None, INVALID),
        (BROKER, "log.cleaner.threads", "0", INVALID),
        (BROKER, "log.cleaner.threads", "-1", INVALID),
        (BROKER, "log.cleaner.threads", "1", NONE),
        (BROKER, "num.replica.fetchers", "0", INVALID),
        (BROKER, "num.io.threads", "0", INVALID),
        (BROKER, "log.retention.ms", "0", INVALID),
        (BROKER, "log.retention.ms", "", INVALID),
        (BROKER, "log.cleaner.io.max.bytes.per.second", "1_000", INVALID),
        (BROKER, "message.max.bytes", "-1", INVALID),
    ],
)
def test_values_out_of_range(
    client: RawClient, make_topic: Make, kind: int, key: str, value: str | None, code: ErrorCode
) -> None:
    name = make_topic() if kind == TOPIC else ""
    assert altered(client, (kind, name, key, value)) == [code]


def test_topics_have_no_common_settings(client: RawClient) -> None:
    assert altered(client, (TOPIC, "", "segment.ms", "1000")) == [INVALID]


def test_no_topic_is_created_in_tiered_storage(client: RawClient, new_name: Callable[..., str]) -> None:
    assert created(client, new_name(), remote_storage_enable="true") == ErrorCode.INVALID_CONFIG
    assert created(client, new_name(), remote_storage_enable="false") == NONE


def test_no_topic_is_called_as_kafkas_metadata(client: RawClient) -> None:
    name = "__cluster_metadata"
    assert created(client, name) == INVALID
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    for _ in range(2):
        (topic,) = client.request(request, 12).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("assigned", "count", "code"),
    [
        ([], 2, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1], [1]], 2, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[]], 2, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], 1, ErrorCode.INVALID_PARTITIONS),
        ([[1]], 2, NONE),
    ],
)
def test_assignments_of_new_partitions(
    client: RawClient, make_topic: Make, assigned: list[list[int]], count: int, code: ErrorCode
) -> None:
    rows = [CreatePartitionsAssignment(broker_ids=broker_ids) for broker_ids in assigned]
    topic = CreatePartitionsTopic(name=make_topic(), count=count, assignments=rows)
    (result,) = client.request(CreatePartitionsRequest(topics=[topic], timeout_ms=60_000), 3).results
    assert result.error_code == code


def test_of_a_partition_named_twice_the_last_offset_counts(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    wait_for(lambda: client.produce(name, [(1, None, b"v", ())] * 3).error_code == NONE)
    topics = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        for offset in (2, 1)
    ]
    (topic,) = client.request(DeleteRecordsRequest(topics=topics, timeout_ms=60_000), 2).topics
    assert [(each.error_code, each.low_watermark) for each in topic.partitions] == [(NONE, 1)]


def test_a_topic_asked_for_twice_is_told_once(client: RawClient, make_topic: Make) -> None:
    row = MetadataRequestTopic(name=make_topic())
    assert len(client.request(MetadataRequest(topics=[row, row]), 12).topics) == 1


def test_groups(client: RawClient, make_topic: Make, new_name: Callable[..., str]) -> None:
    name, group = make_topic(), new_name("group")
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    wait_for(lambda: client.request(find, 4).coordinators[0].error_code == NONE)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name=name, partitions=[partition])
    commit = OffsetCommitRequest(group_id=group, topics=[topic])
    wait_for(lambda: client.request(commit, 8).topics[0].partitions[0].error_code == NONE)
    forgotten = OffsetDeleteRequestTopic(
        name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)]
    )
    (answer,) = client.request(OffsetDeleteRequest(group_id=group, topics=[forgotten]), 0).topics
    assert {each.partition_index: each.error_code for each in answer.partitions} == {
        0: NONE,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    results = client.request(DeleteGroupsRequest(groups_names=[group, group]), 2).results
    assert [(each.group_id, each.error_code) for each in results] == [(group, NONE)]


def test_a_transactional_batch_needs_its_id_also_in_an_open_transaction(
    client: RawClient, make_topic: Make, new_name: Callable[..., str]
) -> None:
    name, transactional_id = make_topic(), new_name("id")
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    wait_for(lambda: client.request(find, 4).coordinators[0].error_code == NONE)
    init = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    answers: list[Any] = []

    def has_begun() -> bool:
        answers.append(client.request(init, 5))
        return bool(answers[-1].error_code == NONE)

    wait_for(has_begun)

    def produced(sequence: int, named: str | None) -> int:
        batch = build_batch(
            [(1, None, b"v", ())],
            producer_id=answers[-1].producer_id,
            producer_epoch=answers[-1].producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        chunks = encode_produce_request([(name, [(0, batch)])], 12, 7, "raw", transactional_id=named)
        client.send(b"".join(bytes(chunk) for chunk in chunks))
        return int(client.receive(0, 12).responses[0].partition_responses[0].error_code)

    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert produced(0, None) == refused
    wait_for(lambda: produced(0, transactional_id) == NONE)
    assert produced(1, None) == refused
    assert produced(1, transactional_id) == NONE
    assert produced(1, None) == refused, "sent again"
