"""OffsetFetch, 1 to 10: how far groups have read; -1 where nothing was committed.

Null topics from version 2 on: all the group has. One group up to version 7, any number from 8 on. Topics by
name, in version 10 by id. `require_stable` (from 7 on, KIP-447): offsets that an open transaction is about to
change are UNSTABLE_OFFSET_COMMIT.
"""

from __future__ import annotations

from typing import Final

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from logd.api.named_topics import TOPIC_IDS_FROM
from logd.api.request.context import RequestContext

REQUEST = OffsetFetchRequest

GROUPS_FROM: Final = 8
GROUP_ERROR_FROM: Final = 2


async def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """Answer group by group."""
    if context.version >= GROUPS_FROM:
        return OffsetFetchResponse(
            groups=[await _fetch(group, request.require_stable, context) for group in request.groups]
        )
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    single_group = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    return _single(single_group, await _fetch(single_group, request.require_stable, context), context.version)


async def _fetch(
    requested: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> OffsetFetchResponseGroup:
    """Return a group's committed offsets, once they cannot be lost: with flush.messages after the fsync."""
    by_id = context.version >= TOPIC_IDS_FROM
    try:
        partition = context.broker.groups.partition(requested.group_id)
        by_name = _named(requested, context) if by_id else requested
        fetched = partition.shard.fetch(by_name, require_stable=require_stable)
        await partition.flushed()
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=requested.group_id, error_code=error.code)
    return _fetch_by_id(requested, fetched, context) if by_id else fetched


def _named(requested: OffsetFetchRequestGroup, context: RequestContext) -> OffsetFetchRequestGroup:
    """Return the request with topic names in place of ids; unknown topics are left out."""
    if requested.topics is None:
        return requested
    resolved = (
        (topic, context.broker.catalog.topics_by_id.get(topic.topic_id)) for topic in requested.topics
    )
    topics = [
        OffsetFetchRequestTopics(
            topic_id=asked_topic.topic_id, name=topic.name, partition_indexes=asked_topic.partition_indexes
        )
        for asked_topic, topic in resolved
        if topic is not None
    ]
    return OffsetFetchRequestGroup(group_id=requested.group_id, topics=topics)


def _fetch_by_id(
    requested: OffsetFetchRequestGroup, fetched: OffsetFetchResponseGroup, context: RequestContext
) -> OffsetFetchResponseGroup:
    """Replace topics' names by their ids. Leave out deleted topics if all of the group's were requested."""
    catalog = context.broker.catalog
    if requested.topics is None:
        fetched.topics = [topic for topic in fetched.topics if topic.name in catalog.topics]
        for topic in fetched.topics:
            topic.topic_id = catalog.topics[topic.name].topic_id
        return fetched
    by_id = {topic.topic_id: topic for topic in fetched.topics}
    fetched.topics = [by_id.get(topic.topic_id) or _unknown(topic) for topic in requested.topics]
    return fetched


def _unknown(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNKNOWN_TOPIC_ID
        )
        for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions)


def _single(
    requested: OffsetFetchRequestGroup, fetched: OffsetFetchResponseGroup, version: int
) -> OffsetFetchResponse:
    """Return the response before version 8; version 1 has no group error, so each partition carries the
    error.
    """
    if fetched.error_code and version < GROUP_ERROR_FROM:
        topics = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=fetched.error_code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in requested.topics or []
        ]
        return OffsetFetchResponse(topics=topics)
    return OffsetFetchResponse(
        error_code=fetched.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name, partitions=list(map(_single_partition, topic.partitions))
            )
            for topic in fetched.topics
        ],
    )


def _single_partition(fetched: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=fetched.partition_index,
        committed_offset=fetched.committed_offset,
        committed_leader_epoch=fetched.committed_leader_epoch,
        metadata=fetched.metadata,
        error_code=fetched.error_code,
    )
