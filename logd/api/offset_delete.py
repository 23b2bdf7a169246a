"""OffsetDelete, 0: forget a group's offsets for topics it does not consume now (KIP-496)."""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.errors import ErrorCode, KafkaError
from logd.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

REQUEST = OffsetDeleteRequest


async def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    """Answer partition by partition; topics there are none of get UNKNOWN_TOPIC_OR_PARTITION."""
    groups = context.broker.groups
    names = context.broker.catalog.topics
    known = [topic for topic in request.topics if topic.name in names]
    try:
        partition = groups.partition(request.group_id)
        valid = OffsetDeleteRequest(group_id=request.group_id, topics=known)
        response = partition.shard.delete_offsets(valid, groups.now_ms)
        await partition.flushed()
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    if not response.error_code:
        response.topics.extend(_unknown(topic) for topic in request.topics if topic.name not in names)
    return response


def _unknown(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    partitions = [
        OffsetDeleteResponsePartition(
            partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        for partition in topic.partitions
    ]
    return OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)
