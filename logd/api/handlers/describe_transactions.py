"""DescribeTransactions, 0: the state of transactional ids, and the partitions their transactions write to
(KIP-664).
"""

from __future__ import annotations

from itertools import groupby

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from logd.api.request.context import RequestContext

REQUEST = DescribeTransactionsRequest


async def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    """Answer id by id; one nobody knows is TRANSACTIONAL_ID_NOT_FOUND."""
    states = [await _described(transactional_id, context) for transactional_id in request.transactional_ids]
    return DescribeTransactionsResponse(transaction_states=states)


async def _described(transactional_id: str, context: RequestContext) -> TransactionState:
    try:
        state = await context.broker.transactions.describe_committed(transactional_id)
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    by_topic = groupby(state.partitions, key=lambda partition: partition.topic)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=state.state.title,
        transaction_timeout_ms=state.timeout_ms,
        transaction_start_time_ms=state.started_ms,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=[partition for _, partition in partitions])
            for topic, partitions in by_topic
        ],
    )
