"""TxnOffsetCommit, 0 to 5: store how far a group has read, if the producer's transaction commits.

Partitions that do not exist get an error of their own; who may commit stands in `logd.groups.txn_offsets`.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from logd.api.request.context import RequestContext
from logd.broker.partition.admission import NotYetAdmitted
from logd.groups.txn_offsets import txn_commit_refused

REQUEST = TxnOffsetCommitRequest


async def handle(request: TxnOffsetCommitRequest, context: RequestContext) -> TxnOffsetCommitResponse:
    """Answer partition by partition."""
    groups = context.broker.groups
    existing = [_existing(topic, context) for topic in request.topics]
    valid = TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=[topic for topic in existing if topic.partitions],
    )
    try:
        groups.partition(request.group_id)
        committed = TxnOffsetCommitResponse()
        if valid.topics:
            committed = await _commit(valid, context)
    except KafkaError as error:
        return txn_commit_refused(request, error.code)
    return _in_order(request, committed)


async def _commit(request: TxnOffsetCommitRequest, context: RequestContext) -> TxnOffsetCommitResponse:
    groups = context.broker.groups
    while True:
        partition = groups.partition(request.group_id)
        try:
            committed = partition.shard.commit_in_transaction(request, context.version, groups.now_ms)
        except NotYetAdmitted as not_yet:
            await not_yet.flushed
            continue
        await partition.flushed()
        return committed


def _existing(requested: TxnOffsetCommitRequestTopic, context: RequestContext) -> TxnOffsetCommitRequestTopic:
    """Return the request for the partitions that exist."""
    topic = context.broker.catalog.topics.get(requested.name)
    count = 0 if topic is None else len(topic.partitions)
    partitions = [partition for partition in requested.partitions if 0 <= partition.partition_index < count]
    return TxnOffsetCommitRequestTopic(name=requested.name, partitions=partitions)


def _in_order(request: TxnOffsetCommitRequest, committed: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
    errors = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in committed.topics
        for partition in topic.partitions
    }
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=errors.get(
                            (topic.name, partition.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                        ),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
