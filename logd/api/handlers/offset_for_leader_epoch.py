"""OffsetForLeaderEpoch, 2 to 4: where a leader epoch ended, so that readers notice truncation (KIP-320)."""

from __future__ import annotations

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from logd.api.request.context import RequestContext
from logd.broker.partition.fencing import check_leader_epoch

REQUEST = OffsetForLeaderEpochRequest


def handle(request: OffsetForLeaderEpochRequest, context: RequestContext) -> OffsetForLeaderEpochResponse:
    """Answer partition by partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(context, topic.topic, partition) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_offset(context: RequestContext, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=requested.partition)
    try:
        partition = context.broker.catalog.find(topic).partition(
            requested.partition, requested.current_leader_epoch
        )
        check_leader_epoch(partition, requested.current_leader_epoch)
        if requested.leader_epoch == partition.leader_epoch:
            answer.leader_epoch, answer.end_offset = partition.leader_epoch, partition.high_watermark
        else:
            answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(
                requested.leader_epoch
            )
    except KafkaError as error:
        answer.error_code = error.code
    return answer
