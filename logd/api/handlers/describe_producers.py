"""DescribeProducers, 0: the producers a partition remembers, and where their open transactions began
(KIP-664). A follower answers too: its log knows them as well.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from logd.api.request.context import RequestContext

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
    try:
        partition = context.broker.catalog.find(topic).hosted(index)
        if partition.is_offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} is in a log directory that is offline"
            )
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
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
