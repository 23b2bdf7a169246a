"""Rules of the APIs about topics and their records."""

from __future__ import annotations

from typing import Any

import msgspec

from kafka_client.acl import Operation, ResourceType
from kafka_client.errors import ErrorCode
from kafka_client.wire.message import NO_UUID
from kafka_client.wire.messages.create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from kafka_client.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafka_client.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from kafka_client.wire.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from kafka_client.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_client.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from logd.api.authorization.access import Access, Need, on_cluster, on_topic
from logd.api.authorization.rule import Each, Shown, Verdict, in_turn
from logd.api.broker_requests import is_from_broker
from logd.api.operations import TOPIC_OPERATIONS
from logd.broker.topics.topic import INTERNAL_TOPICS

_FOR_CLIENTS = Each(
    "topics",
    lambda topic, access: on_topic(Operation.DESCRIBE, topic.name),
    lambda topic, code: ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    ),
    ListOffsetsResponse,
    "topics",
)


def list_offsets(request: Any, access: Access) -> Verdict:
    """Check each topic, but for a broker's request."""
    if request.replica_id >= 0 and is_from_broker(access.context):
        return Verdict(request)
    return _FOR_CLIENTS(request, access)


_EPOCHS_FOR_CLIENTS = Each(
    "topics",
    lambda topic, access: on_topic(Operation.DESCRIBE, topic.topic),
    lambda topic, code: OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=[EpochEndOffset(partition=each.partition, error_code=code) for each in topic.partitions],
    ),
    OffsetForLeaderEpochResponse,
    "topics",
)


def offset_for_leader_epoch(request: Any, access: Access) -> Verdict:
    """Check each topic, but for a peer that may act for the cluster."""
    if is_from_broker(access.context) or access.shows(on_cluster(Operation.CLUSTER_ACTION)):
        return Verdict(request)
    return _EPOCHS_FOR_CLIENTS(request, access)


DELETE_RECORDS = Each(
    "topics",
    lambda topic, access: on_topic(Operation.DELETE, topic.name),
    lambda topic, code: DeleteRecordsTopicResult(
        name=topic.name,
        partitions=[
            DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=-1, error_code=code
            )
            for each in topic.partitions
        ],
    ),
    DeleteRecordsResponse,
    "topics",
)
DESCRIBE_PRODUCERS = Each(
    "topics",
    lambda topic, access: on_topic(Operation.READ, topic.name),
    lambda topic, code: TopicResponse(
        name=topic.name,
        partitions=[
            PartitionResponse(partition_index=index, error_code=code) for index in topic.partition_indexes
        ],
    ),
    DescribeProducersResponse,
    "topics",
)
CREATE_PARTITIONS = Each(
    "topics",
    lambda topic, access: on_topic(Operation.ALTER, topic.name),
    lambda topic, code: CreatePartitionsTopicResult(name=topic.name, error_code=code),
    CreatePartitionsResponse,
    "results",
)


def _creation(topic: Any, access: Access) -> Need | None:
    if access.shows(on_cluster(Operation.CREATE)):
        return None
    return on_topic(Operation.CREATE, topic.name)


def _hide_configs(response: Any, request: Any, access: Access) -> None:
    """Leave out the settings of created topics whose settings the peer may not see."""
    for result in response.topics:
        if not result.error_code and not access.shows(on_topic(Operation.DESCRIBE_CONFIGS, result.name)):
            result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            result.num_partitions = result.replication_factor = -1
            result.configs = []


CREATE_TOPICS = in_turn(
    Each(
        "topics",
        _creation,
        lambda topic, code: CreatableTopicResult(name=topic.name, error_code=code, configs=None),
        CreateTopicsResponse,
        "topics",
    ),
    Shown(_hide_configs),
)


def _deletion(name: str | None, topic_id: bytes, access: Access) -> Need | None:
    if name is None:
        topic = access.catalog.topics_by_id.get(topic_id)
        if topic is None:
            return None
        name = topic.name
    if access.shows(on_cluster(Operation.DELETE)):
        return None
    return on_topic(Operation.DELETE, name)


_DELETE_BY_NAME = Each(
    "topic_names",
    lambda name, access: _deletion(name, NO_UUID, access),
    lambda name, code: DeletableTopicResult(name=name, error_code=code),
    DeleteTopicsResponse,
    "responses",
)
_DELETE_BY_STATE = Each(
    "topics",
    lambda topic, access: _deletion(topic.name, topic.topic_id, access),
    lambda topic, code: DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code),
    DeleteTopicsResponse,
    "responses",
)


def _name_ids(response: Any, request: Any, access: Access) -> None:
    """Name the refused topics that were requested by id, if the peer may see them."""
    for result in response.responses:
        if result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and result.name is None:
            topic = access.catalog.topics_by_id.get(result.topic_id)
            if topic is not None and access.shows(on_topic(Operation.DESCRIBE, topic.name)):
                result.name = topic.name


DELETE_TOPICS = in_turn(Shown(_name_ids), _DELETE_BY_NAME, _DELETE_BY_STATE)


def _describe_operations(response: Any, request: Any, access: Access) -> None:
    for topic in response.topics:
        if not topic.error_code:
            topic.topic_authorized_operations = access.operations(
                ResourceType.TOPIC, topic.name, TOPIC_OPERATIONS
            )


def _visible_topics(request: Any, access: Access) -> Verdict:
    """Name the visible topics in a request for all of them, or not even the next page's cursor is safe."""
    if request.topics:
        return Verdict(request)
    names = [name for name in access.catalog.topics if access.shows(on_topic(Operation.DESCRIBE, name))]
    if not names:
        return Verdict(None, DescribeTopicPartitionsResponse())
    return Verdict(msgspec.structs.replace(request, topics=[TopicRequest(name=name) for name in names]))


DESCRIBE_TOPIC_PARTITIONS = in_turn(
    _visible_topics,
    Each(
        "topics",
        lambda topic, access: on_topic(Operation.DESCRIBE, topic.name),
        lambda topic, code: DescribeTopicPartitionsResponseTopic(
            error_code=code, name=topic.name, is_internal=topic.name in INTERNAL_TOPICS
        ),
        DescribeTopicPartitionsResponse,
        "topics",
    ),
    Shown(_describe_operations),
)
