"""OffsetDelete, 0: forget a group's offsets for topics it does not consume now (KIP-496)."""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
)
from logd.api.request.context import RequestContext

REQUEST = OffsetDeleteRequest


async def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    """Answer partition by partition; those that do not exist get UNKNOWN_TOPIC_OR_PARTITION."""
    groups = context.broker.groups
    existing_topics = [_existing(topic, context) for topic in request.topics]
    try:
        partition = groups.partition(request.group_id)
        valid = OffsetDeleteRequest(group_id=request.group_id, topics=existing_topics)
        response = partition.shard.delete_offsets(valid, groups.now_ms)
        await partition.flushed()
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    if not response.error_code:
        for requested, existing, answer in zip(request.topics, existing_topics, response.topics, strict=True):
            answer.partitions += _unknown(requested, existing)
    return response


def _existing(requested: OffsetDeleteRequestTopic, context: RequestContext) -> OffsetDeleteRequestTopic:
    """Return the partitions asked for that exist."""
    topic = context.broker.catalog.topics.get(requested.name)
    count = 0 if topic is None else len(topic.partitions)
    partitions = [partition for partition in requested.partitions if 0 <= partition.partition_index < count]
    return OffsetDeleteRequestTopic(name=requested.name, partitions=partitions)


def _unknown(
    requested: OffsetDeleteRequestTopic, existing: OffsetDeleteRequestTopic
) -> list[OffsetDeleteResponsePartition]:
    """Return the answers for the others."""
    indexes = {partition.partition_index for partition in existing.partitions}
    return [
        OffsetDeleteResponsePartition(
            partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        for partition in requested.partitions
        if partition.partition_index not in indexes
    ]
