"""OffsetCommit, 2 to 10: store how far a group has read. Topics by name, in version 10 by id.

Partitions that do not exist get an error of their own; who may commit stands in `logd.groups.offsets`.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from logd.api.named_topics import TOPIC_IDS_FROM, topic_called
from logd.api.request.context import RequestContext
from logd.broker.topics.topic import Topic
from logd.groups.offsets import commit_refused

REQUEST = OffsetCommitRequest


async def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    """Answer partition by partition."""
    groups = context.broker.groups
    topics = [topic_called(topic.name, topic.topic_id, context) for topic in request.topics]
    existing = [
        _existing(requested, topic)
        for requested, topic in zip(request.topics, topics, strict=True)
        if topic is not None
    ]
    valid = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        topics=[topic for topic in existing if topic.partitions],
    )
    try:
        partition = groups.partition(request.group_id)
        committed = OffsetCommitResponse()
        if valid.topics:
            committed = partition.shard.commit(valid, context.version, groups.now_ms)
            await partition.flushed()
    except KafkaError as error:
        return commit_refused(request, error.code)
    return _in_order(request, topics, committed, context.version)


def _existing(requested: OffsetCommitRequestTopic, topic: Topic) -> OffsetCommitRequestTopic:
    """Return the request for the partitions that exist, under the topic's name."""
    count = len(topic.partitions)
    partitions = [partition for partition in requested.partitions if 0 <= partition.partition_index < count]
    return OffsetCommitRequestTopic(topic_id=requested.topic_id, name=topic.name, partitions=partitions)


def _in_order(
    request: OffsetCommitRequest, topics: list[Topic | None], committed: OffsetCommitResponse, version: int
) -> OffsetCommitResponse:
    errors = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in committed.topics
        for partition in topic.partitions
    }
    response = OffsetCommitResponse()
    for requested, topic in zip(request.topics, topics, strict=True):
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None and version >= TOPIC_IDS_FROM:
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        name = "" if topic is None else topic.name
        partitions = [
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index,
                error_code=errors.get((name, partition.partition_index), missing),
            )
            for partition in requested.partitions
        ]
        answer = OffsetCommitResponseTopic(
            name=requested.name, topic_id=requested.topic_id, partitions=partitions
        )
        response.topics.append(answer)
    return response
