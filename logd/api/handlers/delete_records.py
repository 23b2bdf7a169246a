"""DeleteRecords, 0 to 2: everything below an offset goes; -1 means up to the high watermark.

Of a partition that is named twice the last offset counts, as by Apache Kafka.

With other replicas the answer waits until it has gone from all of them that are alive, or REQUEST_TIMED_OUT
says that the time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from logd.api.request.context import RequestContext
from logd.broker.partition.partition import Partition

REQUEST = DeleteRecordsRequest

HIGH_WATERMARK = -1

Behind: TypeAlias = list[tuple[Callable[[], asyncio.Future[int]], DeleteRecordsPartitionResult]]
"""Functions that return a future of the low watermark, each with the result to be filled in."""


def handle(
    request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse | Callable[[], Awaitable[DeleteRecordsResponse]]:
    """Answer partition by partition with the low watermark."""
    topics = []
    behind: Behind = []
    for name, offsets in _requested_offsets(request).items():
        results = []
        for index, requested_offset in offsets.items():
            result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1)
            try:
                partition = context.broker.catalog.find(name).partition(index)
                partition.check_leased()
                offset = _delete_before(context, partition, requested_offset)
                result.low_watermark, reach = _low_watermark(context, partition, offset)
                if reach is not None:
                    behind.append((reach, result))
            except KafkaError as error:
                result.error_code = error.code
            results.append(result)
        topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
    response = DeleteRecordsResponse(topics=topics)
    return partial(_wait, response, behind, request.timeout_ms) if behind else response


def _requested_offsets(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """Return the offsets by topic and partition."""
    offsets_by_topic: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = offsets_by_topic.setdefault(topic.name, {})
        offsets.update((each.partition_index, each.offset) for each in topic.partitions)
    return offsets_by_topic


def _delete_before(context: RequestContext, partition: Partition, offset: int) -> int:
    """Delete records before ``offset``. Return that offset, with HIGH_WATERMARK resolved."""
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
    return offset


def _low_watermark(
    context: RequestContext, partition: Partition, offset: int
) -> tuple[int, Callable[[], asyncio.Future[int]] | None]:
    """Return the low watermark, and a function to wait for it if it is before ``offset``."""
    leading = context.broker.leading
    led = None if leading is None else leading.led.get(partition.tp)
    if leading is None or led is None:
        return partition.log_start_offset, None
    low_watermark = leading.low_watermarks.of(led)
    if low_watermark >= offset:
        return low_watermark, None
    return low_watermark, partial(leading.low_watermarks.reach, led, offset)


async def _wait(response: DeleteRecordsResponse, behind: Behind, timeout_ms: int) -> DeleteRecordsResponse:
    waiting = [(reach(), result) for reach, result in behind]
    try:
        await asyncio.wait([reached for reached, _ in waiting], timeout=max(timeout_ms, 0) / 1000)
        for reached, result in waiting:
            if not reached.done():
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
            elif (error := reached.exception()) is None:
                result.low_watermark = reached.result()
            else:
                assert isinstance(error, KafkaError), error
                result.error_code, result.low_watermark = error.code, -1
    finally:
        for reached, _ in waiting:
            reached.cancel()
    return response
