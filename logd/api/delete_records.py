"""DeleteRecords, 0 to 2: everything below an offset goes; -1 means up to the high watermark."""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.broker.partition import Partition
from logd.errors import ErrorCode, KafkaError
from logd.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

REQUEST = DeleteRecordsRequest

HIGH_WATERMARK = -1


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    """Answer partition by partition with the new log start offset."""
    topics = []
    for topic in request.topics:
        results = []
        for asked in topic.partitions:
            result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
            try:
                partition = context.broker.catalog.find(topic.name).partition(asked.partition_index)
                partition.check_leased()
                _delete_before(context, partition, asked.offset)
                result.low_watermark = partition.log_start_offset
            except KafkaError as error:
                result.error_code = error.code
            results.append(result)
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return DeleteRecordsResponse(topics=topics)


def _delete_before(context: RequestContext, partition: Partition, offset: int) -> None:
    if not partition.config.is_deleted:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{partition} is compacted; records go by cleanup.policy=delete only"
        )
    end = partition.high_watermark
    if offset == HIGH_WATERMARK:
        offset = end
    if not 0 <= offset <= end:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} ends at {end}, not at {offset}")
    if offset > partition.log_start_offset:
        context.broker.housekeeping.discard(partition.delete_records_before(offset))
        context.broker.housekeeping.flusher.touched(partition)
