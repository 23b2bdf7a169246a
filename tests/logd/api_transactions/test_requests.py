"""Transactions by raw requests, in every version of the APIs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.api_versions import ApiVersionsRequest
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_client.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_client.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.logd.api_transactions.producers import RawProducer, committed_values, markers
from tests.support.raw_client import RawClient


def test_what_is_committed_becomes_visible(client: RawClient, producer: RawProducer, topic: str) -> None:
    assert producer.produce(topic, "a") == 0
    assert producer.produce(topic, "b", partition=1) == 0
    assert committed_values(client, topic) == []
    assert producer.end(True).error_code == 0
    assert committed_values(client, topic) == ["a"]
    assert committed_values(client, topic, 1) == ["b"]
    assert producer.produce(topic, "c") == 0
    assert producer.end(False).error_code == 0
    assert producer.produce(topic, "d") == 0
    assert producer.end(True).error_code == 0
    assert committed_values(client, topic) == ["a", "d"]
    assert [outcome for outcome, _ in markers(client, topic)] == ["commit", "abort", "commit"]


def test_offsets_are_committed_with_the_records(
    client: RawClient, producer: RawProducer, topic: str, new_name: Callable[..., str]
) -> None:
    group = new_name("group")
    client.request(FindCoordinatorRequest(coordinator_keys=[group]), 6)

    def committed() -> int:
        topics = OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[topics])])
        return int(client.request(request, 8).groups[0].topics[0].partitions[0].committed_offset)

    assert producer.produce(topic, "a") == 0
    assert producer.commit_offset(group, topic, 5) == 0
    assert committed() == -1
    assert producer.end(True).error_code == 0
    assert committed() == 5
    assert producer.commit_offset(group, topic, 6) == 0
    assert producer.end(False).error_code == 0
    assert committed() == 5


def test_before_version_5_the_epoch_stays(client: RawClient, transactional_id: str, topic: str) -> None:
    producer = RawProducer(client, transactional_id, version=0)
    assert producer.init() == 0
    for version in range(5):
        assert producer.produce(topic, str(version)) == 0
        answer = producer.end(True, version=version)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, -1, -1)
    assert markers(client, topic) == [("commit", 0)] * 5


def test_from_version_5_on_every_transaction_has_its_epoch(
    client: RawClient, bumping: RawProducer, topic: str
) -> None:
    for value in "abc":
        assert bumping.produce(topic, value) == 0
        assert bumping.end(True).error_code == 0
    assert bumping.epoch == 3
    assert markers(client, topic) == [("commit", 1), ("commit", 2), ("commit", 3)]


def test_a_repeated_end_is_answered_as_before(bumping: RawProducer, topic: str) -> None:
    assert bumping.produce(topic, "a") == 0
    first = bumping.end(True, lost=True)
    assert bumping.end(False, lost=True).error_code == ErrorCode.INVALID_TXN_STATE
    again = bumping.end(True)
    assert again == first
    assert (again.error_code, again.producer_epoch) == (0, 1)
    assert bumping.end(True).error_code == ErrorCode.INVALID_TXN_STATE, "nothing was begun"


def test_a_newcomer_fences(client: RawClient, producer: RawProducer, topic: str) -> None:
    assert producer.produce(topic, "a") == 0
    newcomer = RawProducer(client, producer.transactional_id, version=producer.version)
    assert newcomer.init_once() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert newcomer.init() == 0
    assert committed_values(client, topic) == []
    assert markers(client, topic) == [("abort", 1)]
    assert producer.produce(topic, "b", version=11) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.produce(topic, "b", version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
    for version in (2, 3, 4, 5):
        assert producer.end(True, version=version).error_code == ErrorCode.PRODUCER_FENCED
    for version in (0, 1):
        assert producer.end(True, version=version).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert producer.add((topic, 0), version=version) == {(topic, 0): ErrorCode.INVALID_PRODUCER_EPOCH}
    for version in (2, 3):
        assert producer.add((topic, 0), version=version) == {(topic, 0): ErrorCode.PRODUCER_FENCED}
    assert producer.init_once(go_on=True, version=3) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.init_once(go_on=True, version=4) == ErrorCode.PRODUCER_FENCED
    assert newcomer.produce(topic, "c") == 0
    assert newcomer.end(True).error_code == 0
    assert committed_values(client, topic) == ["c"]


def test_a_producer_goes_on_after_an_error(bumping: RawProducer) -> None:
    before = bumping.producer_id, bumping.epoch
    assert bumping.init(go_on=True) == 0
    assert (bumping.producer_id, bumping.epoch) == (before[0], before[1] + 1)
    bumping.producer_id, bumping.epoch = before
    assert bumping.init(go_on=True) == 0
    assert bumping.epoch == before[1] + 1, "it did not hear of its epoch and asked again"


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_an_identity(client: RawClient, transactional_id: str, version: int) -> None:
    producer = RawProducer(client, transactional_id)
    assert producer.init(version=version) == 0
    assert (producer.producer_id >= 0, producer.epoch) == (True, 0)
    assert producer.init(version=version) == 0
    assert producer.epoch == 1


def test_what_cannot_be_initialised(client: RawClient, transactional_id: str) -> None:
    def code(**fields: object) -> int:
        request = InitProducerIdRequest(
            **{"transactional_id": transactional_id, "transaction_timeout_ms": 1_000, **fields}
        )
        answer = client.request(request, 5)
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
        return int(answer.error_code)

    # A broker that has coordinated nothing yet has no __transaction_state.
    assert RawProducer(client, transactional_id).init() == 0
    assert code(transactional_id="") == ErrorCode.INVALID_REQUEST
    assert code(transaction_timeout_ms=900_001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert code(transaction_timeout_ms=0) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert code(producer_id=5) == ErrorCode.INVALID_REQUEST
    assert code(producer_epoch=5) == ErrorCode.INVALID_REQUEST


def test_one_unknown_partition_fails_them_all(bumping: RawProducer, topic: str) -> None:
    expected = {
        (topic, 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        (topic, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert bumping.add((topic, 0), (topic, 7), ("missing", 0)) == expected
    internal = ("__consumer_offsets", 0)
    assert bumping.add(internal) == {internal: ErrorCode.TOPIC_AUTHORIZATION_FAILED}


@pytest.mark.parametrize(
    ("version", "code"), [(9, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_a_partition_that_was_not_added_is_refused(
    client: RawClient, bumping: RawProducer, topic: str, version: int, code: ErrorCode
) -> None:
    assert bumping.add((topic, 1)) == {(topic, 1): 0}
    assert bumping.produce(topic, "a", version=version) == code
    assert bumping.add((topic, 0)) == {(topic, 0): 0}
    assert bumping.produce(topic, "a", version=version) == 0, "the same sequence number is still due"


def test_what_comes_after_the_end_is_refused(client: RawClient, transactional_id: str, topic: str) -> None:
    """Writes after a transaction's end are refused: a delayed write would open a hanging transaction
    (KIP-890).
    """
    producer = RawProducer(client, transactional_id, version=0)
    assert producer.init() == 0
    assert producer.produce(topic, "a") == 0
    assert producer.end(False).error_code == 0
    assert producer.produce(topic, "late", version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert committed_values(client, topic) == []
    assert client.fetch(topic).last_stable_offset == client.fetch(topic).high_watermark


def test_nobody_writes_under_an_id_that_is_not_his(
    client: RawClient, bumping: RawProducer, topic: str, new_name: Callable[..., str]
) -> None:
    stranger = RawProducer(client, new_name("stranger"))
    stranger.identity(bumping.producer_id, bumping.epoch)
    for version in (11, 12):
        assert stranger.produce(topic, "a", version=version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert bumping.produce(topic, "a", named=False) == refused
    assert stranger.end(True).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert stranger.add((topic, 0)) == {(topic, 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_a_topic_may_be_deleted_meanwhile(
    client: RawClient, producer: RawProducer, topic: str, new_name: Callable[..., str]
) -> None:
    doomed = new_name()
    client.request(MetadataRequest(topics=[MetadataRequestTopic(name=doomed)]), 12)
    assert producer.produce(doomed, "a") == 0
    assert producer.produce(topic, "b") == 0
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=doomed)], timeout_ms=1000)
    assert client.request(request, 6).responses[0].error_code == 0
    assert producer.end(True).error_code == 0
    assert committed_values(client, topic) == ["b"]
    assert producer.init() == 0


def written(client: RawClient, topic: str, version: int, **fields: object) -> dict[int, int]:
    """Send a marker for partitions 0 and 7 of a topic, and return the error codes by partition."""
    topic_row = WritableTxnMarkerTopic(name=topic, partition_indexes=[0, 7])
    marker = WritableTxnMarker(**{"topics": [topic_row], "transaction_version": 2, **fields})
    answer = client.request(WriteTxnMarkersRequest(markers=[marker]), version).markers[0]
    assert answer.producer_id == marker.producer_id
    return {row.partition_index: row.error_code for row in answer.topics[0].partitions}


@pytest.mark.parametrize("version", [1, 2])
def test_an_operator_ends_what_hangs(
    client: RawClient, bumping: RawProducer, topic: str, version: int
) -> None:
    """Operators can end a hanging transaction.

    The request is that of Admin.abortTransaction, `kafka-transactions.sh abort` and `millstream txn abort`.
    """
    assert bumping.produce(topic, "a") == 0
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    old = {"producer_id": bumping.producer_id, "producer_epoch": bumping.epoch}
    marker = {"producer_id": bumping.producer_id, "producer_epoch": bumping.epoch + 1}
    late = {0: ErrorCode.INVALID_PRODUCER_EPOCH, 7: unknown}
    assert written(client, topic, version, **old) == (late if version == 2 else {0: 0, 7: unknown})
    if version == 2:
        assert written(client, topic, version, **marker) == {0: 0, 7: unknown}
    assert committed_values(client, topic) == []
    assert client.fetch(topic).last_stable_offset == client.fetch(topic).high_watermark


@pytest.mark.parametrize(
    "beyond",
    [{"transaction_result": True}, {"coordinator_epoch": 1}, {"producer_epoch": 2}, {"producer_id": 4711}],
    ids=["commit", "fence the coordinator", "fence the producer", "another producer"],
)
def test_only_a_broker_may_do_more(
    client: RawClient, bumping: RawProducer, topic: str, beyond: dict[str, object]
) -> None:
    """A client commits nobody's transaction, and fences neither producer nor coordinator."""
    assert bumping.produce(topic, "a") == 0
    marker = {"producer_id": bumping.producer_id, "producer_epoch": bumping.epoch + 1, **beyond}
    assert written(client, topic, 1, **marker)[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert committed_values(client, topic) == []
    assert bumping.produce(topic, "b") == 0
    assert bumping.end(True).error_code == 0
    assert committed_values(client, topic) == ["a", "b"]


@pytest.mark.parametrize(("version", "lowest"), [(3, 1), (4, 0)])
def test_clients_are_told_to_bump_epochs(client: RawClient, version: int, lowest: int) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    answer = client.request(request, version)
    assert answer.finalized_features_epoch >= 0
    finalized = {
        one.name: (one.min_version_level, one.max_version_level) for one in answer.finalized_features
    }
    assert finalized == {"transaction.version": (2, 2)}
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    assert supported == {"transaction.version": (lowest, 2)}


def test_the_coordinators_topic_is_kafkas(client: RawClient, bumping: RawProducer) -> None:
    resource = DescribeConfigsResource(resource_type=2, resource_name="__transaction_state")
    result = client.request(DescribeConfigsRequest(resources=[resource]), 4).results[0]
    configs = {config.name: config.value for config in result.configs}
    assert configs["cleanup.policy"] == "compact"
    assert configs["compression.type"] == "uncompressed"
    assert configs["min.insync.replicas"] == "1"
    assert configs["segment.bytes"] == "104857600"
