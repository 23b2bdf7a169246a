"""ListOffsets, 1 to 11: the offset of a timestamp, or of a special value.

    -1  latest (for read_committed: of committed transactions)
    -2  earliest
    -3  largest timestamp (7+)
    -4  earliest local (8+)
    -5  latest tiered (9+)
    -6  earliest not yet tiered (11+)

Nothing is tiered here, so that -4 is the earliest offset, and -5 and -6 find nothing. A thread first reads
indexes and batches that are not in memory. A thread also searches a batch that decompresses to more than
LOOP_DECOMPRESSED_MAX.

After an election the high watermark may be below the start of the leader epoch (KIP-207). Until it has passed
that start, the latest offset for consumers is unknown, and so is whether later records are committed. They
get OFFSET_NOT_AVAILABLE (5+) or LEADER_NOT_AVAILABLE, and ask again.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from logd.api.broker_requests import is_from_broker
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.broker.partition.batch_rules import LOOP_DECOMPRESSED_MAX
from logd.broker.partition.fencing import check_leader_epoch
from logd.broker.partition.partition import Partition
from logd.storage import TimestampOffset
from logd.storage.timestamp_search import NotSearched

REQUEST = ListOffsetsRequest

DEBUGGING = -2
"""The replica id of Kafka's tools that look at a replica."""
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)
_FIRST_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}

_NOT_FOUND = TimestampOffset(-1, -1, -1)


async def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    """Answer partition by partition."""
    # A follower reads all there is. From others than brokers the replica id counts for nothing: some clients
    # leave it at 0, the value of a field that is not set.
    is_follower = request.replica_id >= 0 and is_from_broker(context)
    read_committed = request.isolation_level == 1 and not is_follower and request.replica_id != DEBUGGING
    topics = []
    for topic in request.topics:
        times = Counter(partition.partition_index for partition in topic.partitions)
        answers = []
        for requested in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=requested.partition_index)
            try:
                if times[requested.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"{topic.name} asked for twice")
                found_topic = context.broker.catalog.find(topic.name)
                partition = found_topic.partition(requested.partition_index, requested.current_leader_epoch)
                check_leader_epoch(partition, requested.current_leader_epoch)
                if is_follower:
                    end = partition.log_end_offset
                else:
                    end = partition.last_stable_offset if read_committed else partition.high_watermark
                is_lagging = not is_follower and _is_lagging(partition)
                result = await _find(partition, requested.timestamp, context, end, is_lagging)
                if found_topic.partition(requested.partition_index) is not partition:
                    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} was opened again")
                answer.timestamp, answer.offset, answer.leader_epoch = result
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _is_lagging(partition: Partition) -> bool:
    role = partition.role
    return role is not None and partition.high_watermark < role.epoch_start_offset


def _not_available(partition: Partition, version: int) -> KafkaError:
    code = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    return KafkaError(
        code,
        f"{partition}: how far is committed is not known beyond {partition.high_watermark} yet, its leader "
        "was elected just now",
    )


async def _find(
    partition: Partition, timestamp: int, context: RequestContext, end: int, is_lagging: bool
) -> TimestampOffset:
    version = context.version
    if version < _FIRST_VERSION.get(timestamp, 0) or timestamp < EARLIEST_PENDING:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} in version {version}")
    if timestamp == LATEST:
        if is_lagging:
            raise _not_available(partition, version)
        return TimestampOffset(-1, end, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log_start_offset
        return TimestampOffset(-1, start, partition.epoch_of(start))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return _NOT_FOUND
    result = await _find_by_time(partition, timestamp, context.broker)
    if result is not None and result.offset < end:
        return result
    if result is not None and is_lagging:
        raise _not_available(partition, version)
    return _NOT_FOUND


async def _find_by_time(partition: Partition, timestamp: int, broker: Broker) -> TimestampOffset | None:
    """Return the first record at or after `timestamp`, or with the largest one; None if there is none."""
    log, cold_reads = partition.log, broker.cold_reads
    if timestamp == MAX_TIMESTAMP:
        timestamp = await cold_reads.until_resident(log.reader.largest_timestamp)
        if timestamp < 0:
            return None
    start = 0
    while True:
        find = partial(
            log.reader.offset_for_timestamp, timestamp, start, decompressed_max=LOOP_DECOMPRESSED_MAX
        )
        try:
            return await cold_reads.until_resident(find)
        except NotSearched as batch:
            search = batch.search
        result = await broker.validator.run(search.run, len(search.batch))
        if result is not None:
            return TimestampOffset(*result, log.epoch_of(result[1]))
        start = search.header.next_offset
