"""WriteTxnMarkers, 1 to 2: end transactions in partitions, whatever their coordinator says.

For brokers, and for an operator who aborts a transaction that hangs (KIP-664). The log checks the producer's
and the coordinator's epoch. Where another broker leads the partition it is NOT_LEADER_OR_FOLLOWER.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeAlias

from logd.api.context import RequestContext
from logd.errors import ErrorCode, KafkaError
from logd.topic_partition import TopicPartition
from logd.transactions import ProducerIdentity
from logd.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

REQUEST = WriteTxnMarkersRequest

Outcome: TypeAlias = Awaitable[None] | ErrorCode | None
"""Of one marker: an error, or what to await until it is committed."""


async def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    """Answer partition by partition, once all markers are committed: they wait together."""
    begun = [
        (marker, [(topic.name, _begun(topic, marker, context)) for topic in marker.topics])
        for marker in request.markers
    ]
    response = WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=await _code(flushing)
                            )
                            for index, flushing in partitions
                        ],
                    )
                    for name, partitions in topics
                ],
            )
            for marker, topics in begun
        ]
    )
    shared = context.broker.shared
    if shared is not None and not shared.is_leased:
        _fence(response)
    return response


def _fence(response: WriteTxnMarkersResponse) -> None:
    """Acknowledge nothing: others may have been elected while the markers waited."""
    for marker in response.markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                partition.error_code = partition.error_code or ErrorCode.NOT_LEADER_OR_FOLLOWER


def _begun(
    topic: WritableTxnMarkerTopic, marker: WritableTxnMarker, context: RequestContext
) -> list[tuple[int, Outcome]]:
    return [
        (index, _written(TopicPartition(topic.name, index), marker, context))
        for index in topic.partition_indexes
    ]


def _written(where: TopicPartition, marker: WritableTxnMarker, context: RequestContext) -> Outcome:
    markers = context.broker.transactions.markers
    try:
        markers.check_led(where)
        return markers.write(
            where,
            ProducerIdentity(marker.producer_id, marker.producer_epoch),
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
    except KafkaError as error:
        return error.code


async def _code(outcome: Outcome) -> ErrorCode:
    if outcome is None or isinstance(outcome, ErrorCode):
        return outcome or ErrorCode.NONE
    try:
        await outcome
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
