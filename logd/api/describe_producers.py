"""DescribeProducers, 0: the producers a partition remembers, and where their open transactions began
(KIP-664).
"""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.errors import ErrorCode
from logd.topic_partition import TopicPartition
from logd.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

REQUEST = DescribeProducersRequest


def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    """Answer partition by partition."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_partition(topic.name, index, context) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _partition(topic: str, index: int, context: RequestContext) -> PartitionResponse:
    catalog = context.broker.catalog
    partition = catalog.partitions.get(TopicPartition(topic, index))
    if partition is None or partition.is_offline:
        known = topic in catalog.topics and 0 <= index < len(catalog.topics[topic].partitions)
        code = ErrorCode.KAFKA_STORAGE_ERROR if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionResponse(partition_index=index, error_code=code)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_first_offset,
            )
            for producer_id, producer in partition.producers
        ],
    )
