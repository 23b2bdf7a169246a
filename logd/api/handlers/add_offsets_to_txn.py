"""AddOffsetsToTxn, 0 to 4: a transaction is about to commit offsets of a group.

The same as adding the partition of `__consumer_offsets` the group lives in. Before version 2 PRODUCER_FENCED
is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from kafka_client.errors import KafkaError
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from logd.api.request.context import RequestContext
from logd.api.transaction_codes import code_for
from logd.broker.coordinators.coordinator import partition_for
from logd.broker.topics.topic import GROUP_OFFSETS
from logd.transactions import ProducerIdentity

REQUEST = AddOffsetsToTxnRequest

FENCED_FROM = 2


async def handle(request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
    """Answer with a code."""
    broker = context.broker
    try:
        await broker.groups.ensure_topic()
        count = len(broker.catalog.find(GROUP_OFFSETS).partitions)
        await broker.transactions.add_partitions(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            (TopicPartition(GROUP_OFFSETS, partition_for(request.group_id, count)),),
        )
    except KafkaError as error:
        return AddOffsetsToTxnResponse(error_code=code_for(error, context.version, fenced_from=FENCED_FROM))
    return AddOffsetsToTxnResponse()
