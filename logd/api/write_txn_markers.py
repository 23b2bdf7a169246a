"""WriteTxnMarkers, 1 to 2: end transactions in partitions, whatever their coordinator says.

For brokers, and for an operator who aborts a transaction that hangs (KIP-664). The log checks the producer's
and the coordinator's epoch.
"""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.errors import ErrorCode, KafkaError
from logd.topic_partition import TopicPartition
from logd.transactions import ProducerIdentity
from logd.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

REQUEST = WriteTxnMarkersRequest


async def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    """Answer partition by partition."""
    response = WriteTxnMarkersResponse()
    for marker in request.markers:
        topics = []
        for topic in marker.topics:
            results = [
                WritableTxnMarkerPartitionResult(
                    partition_index=index,
                    error_code=await _write(TopicPartition(topic.name, index), marker, context),
                )
                for index in topic.partition_indexes
            ]
            topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=results))
        response.markers.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
    return response


async def _write(where: TopicPartition, marker: WritableTxnMarker, context: RequestContext) -> ErrorCode:
    try:
        flushing = context.broker.transactions.markers.write(
            where,
            ProducerIdentity(marker.producer_id, marker.producer_epoch),
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
        if flushing is not None:
            await flushing
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
