"""DescribeTopicPartitions, 0: topics by name, page by page (KIP-966).

An answer holds at most ``response_partition_limit`` partitions, or ``max.request.partition.size.limit``, and
its cursor says where the next one begins. Topics come in the order of their names; no names ask for all.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from logd.api.operations import TOPIC_OPERATIONS
from logd.api.request.context import RequestContext
from logd.broker.topics.topic import Topic
from logd.metadata.topic_names import check_name

REQUEST = DescribeTopicPartitionsRequest


def handle(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """Return one page, or INVALID_REQUEST for each topic if the cursor fits none of them, as in Kafka."""
    broker, cursor = context.broker, request.cursor
    requested = [topic.name for topic in request.topics]
    begins = cursor.topic_name if cursor is not None else ""
    if cursor is not None and (cursor.partition_index < 0 or (requested and begins not in requested)):
        refused = DescribeTopicPartitionsResponseTopic
        return DescribeTopicPartitionsResponse(
            topics=[refused(name=name, error_code=ErrorCode.INVALID_REQUEST) for name in requested]
        )
    names = sorted({name for name in requested or broker.catalog.topics if name >= begins})
    limit = min(request.response_partition_limit, broker.config.max_request_partition_size_limit)
    first = {begins: cursor.partition_index} if cursor is not None else {}
    topics, end = _page(context, names, first, max(limit, 1))
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=end)


def _page(
    context: RequestContext, names: Iterable[str], first: dict[str, int], room: int
) -> tuple[list[DescribeTopicPartitionsResponseTopic], Cursor | None]:
    """Return topics with at most `room` partitions in all, and the cursor of the next page."""
    page: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if room <= 0:
            return page, Cursor(topic_name=name, partition_index=0)
        try:
            check_name(name)
            topic = context.broker.catalog.find(name)
        except KafkaError as error:
            page.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=error.code, name=name, topic_authorized_operations=TOPIC_OPERATIONS
                )
            )
            continue
        start = first.get(name, 0)
        end = min(start + room, len(topic.partitions))
        page.append(_described(context, topic, range(start, end)))
        if end < len(topic.partitions):
            return page, Cursor(topic_name=name, partition_index=end)
        room -= max(end - start, 0)
    return page, None


def _described(context: RequestContext, topic: Topic, indexes: range) -> DescribeTopicPartitionsResponseTopic:
    views = context.broker.cluster.partitions(topic, indexes, context.endpoint)
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=view.error_code,
                partition_index=index,
                leader_id=view.leader,
                leader_epoch=view.leader_epoch,
                replica_nodes=view.replicas,
                isr_nodes=view.isr,
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=view.offline,
            )
            for index, view in zip(indexes, views, strict=True)
        ],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
