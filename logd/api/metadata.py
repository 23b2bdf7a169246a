"""Metadata, 0 to 13: brokers, topics and who leads their partitions.

All topics: an empty list in version 0, null from version 1 on. Topics that do not exist are created when the
client (from version 4 on) and ``auto.create.topics.enable`` allow it, and are answered as created at once.
Topic ids may be asked for from version 10 on, with a null name from 12 on.
"""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.api.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from logd.broker.broker import Broker
from logd.broker.topic import INTERNAL_TOPICS, Topic, check_name
from logd.errors import ErrorCode, KafkaError
from logd.wire.message import NO_UUID
from logd.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

REQUEST = MetadataRequest


async def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """Answer for the topics asked, each with its own error code."""
    broker = context.broker
    topics = broker.catalog.topics
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    if request.topics is None or (context.version == 0 and not request.topics):
        described = [_described(broker, topic, operations) for topic in topics.values()]
    else:
        may_create = broker.config.auto_create_topics_enable and (
            request.allow_auto_topic_creation or context.version < 4
        )
        described = [await _asked(broker, asked, may_create, operations) for asked in request.topics]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.node_id,
                host=context.endpoint.host,
                port=context.endpoint.port,
                rack=broker.config.broker_rack,
            )
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=described,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


async def _asked(
    broker: Broker, asked: MetadataRequestTopic, may_create: bool, operations: int
) -> MetadataResponseTopic:
    try:
        if asked.name is None or asked.topic_id != NO_UUID:
            topic = broker.catalog.find_by_id(asked.topic_id)
        elif (known := broker.catalog.topics.get(asked.name)) is not None:
            topic = known
        else:
            check_name(asked.name)
            topic = await _created(broker, asked.name, may_create)
    except KafkaError as error:
        return MetadataResponseTopic(
            error_code=error.code,
            name=asked.name,  # null only from version 12 on, which the decoder has seen to
            topic_id=asked.topic_id,
            is_internal=asked.name in INTERNAL_TOPICS,
        )
    return _described(broker, topic, operations)


async def _created(broker: Broker, name: str, may_create: bool) -> Topic:
    if not may_create:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    try:
        return await broker.auto_create(name)
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_ALREADY_EXISTS:  # another client asked at the same time
            return broker.catalog.find(name)
        raise


def _described(broker: Broker, topic: Topic, operations: int) -> MetadataResponseTopic:
    node = [broker.node_id]
    partitions = []
    for index, partition in enumerate(topic.partitions):
        if partition is not None and not partition.is_offline:
            described = MetadataResponsePartition(
                partition_index=index,
                leader_id=broker.node_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=node,
                isr_nodes=node,
            )
        else:
            described = MetadataResponsePartition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=-1,
                replica_nodes=node,
                isr_nodes=node,
                offline_replicas=node,
            )
        partitions.append(described)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=operations,
    )
