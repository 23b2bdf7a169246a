"""WriteTxnMarkers, 1 to 2: end transactions in partitions, whatever their coordinator says.

For brokers, and for an operator who aborts a transaction that hangs (KIP-664). From others than
brokers, all but such an abort is CLUSTER_AUTHORIZATION_FAILED. The log checks the epochs of the producer and
the coordinator. Where another broker leads the partition it is NOT_LEADER_OR_FOLLOWER.

logd's coordinators also say which leader epoch, topic and transaction they mean, in tagged fields of ours.
What comes late is refused by the first two, and not written again by the third.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from logd.api.broker_requests import is_from_broker
from logd.api.operators_abort import check_operators_abort
from logd.api.request.context import RequestContext
from logd.broker.transactions.marker_outcome import Outcome
from logd.transactions import ProducerIdentity

REQUEST = WriteTxnMarkersRequest

Written: TypeAlias = Awaitable[None] | ErrorCode | None
"""The result of one marker: an error, an awaitable that ends when it is committed, or None if it is."""


async def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    """Answer partition by partition, once all markers are committed: they wait together."""
    writes = [
        (marker, [(topic.name, _start_write(topic, marker, context)) for topic in marker.topics])
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
            for marker, topics in writes
        ]
    )
    membership = context.broker.membership
    if membership is not None and not membership.is_leased:
        _fence(response)
    return response


def _fence(response: WriteTxnMarkersResponse) -> None:
    """Acknowledge nothing: others may have been elected while the markers waited."""
    for marker in response.markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                partition.error_code = partition.error_code or ErrorCode.NOT_LEADER_OR_FOLLOWER


def _start_write(
    topic: WritableTxnMarkerTopic, marker: WritableTxnMarker, context: RequestContext
) -> list[tuple[int, Written]]:
    indexes, epochs = topic.partition_indexes, topic.leader_epochs or [-1] * len(topic.partition_indexes)
    if len(epochs) != len(indexes):
        return [(index, ErrorCode.INVALID_REQUEST) for index in indexes]
    outcome = Outcome(
        ProducerIdentity(marker.producer_id, marker.producer_epoch),
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
        marker.transaction_number,
    )
    markers = context.broker.transactions.markers

    def written(index: int, leader_epoch: int) -> Written:
        where = TopicPartition(topic.name, index)
        try:
            if not is_from_broker(context):
                check_operators_abort(context.broker.catalog, where, outcome)
            markers.check_led(where, leader_epoch, topic.topic_id)
            return markers.write(where, outcome)
        except KafkaError as error:
            return error.code

    return [(index, written(index, epoch)) for index, epoch in zip(indexes, epochs, strict=True)]


async def _code(written: Written) -> ErrorCode:
    if written is None or isinstance(written, ErrorCode):
        return written or ErrorCode.NONE
    try:
        await written
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
