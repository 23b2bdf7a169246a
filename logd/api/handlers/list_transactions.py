"""ListTransactions, 0 to 2: the transactional ids that pass some filters (KIP-664).

An empty filter lets all pass. Version notes: from 1 on those can be asked for that have been running longer
than `duration_filter` ms (KIP-994); from 2 on those whose whole id matches a regular expression (KIP-1152).
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafka_client.wire.messages.list_transactions import TransactionState as Listed
from logd.api.patterns import matcher
from logd.api.request.context import RequestContext
from logd.transactions import TransactionDescription, TransactionState

REQUEST = ListTransactionsRequest

_STATES = {state.title: state for state in TransactionState}


async def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    """Answer for every id; INVALID_REGULAR_EXPRESSION, COORDINATOR_LOAD_IN_PROGRESS for the whole."""
    unknown = [name for name in request.state_filters if name not in _STATES]
    try:
        passes = _filter(request, context.broker.now_ms())
        transactions = [listed for listed in await context.broker.transactions.listed() if passes(listed)]
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code, unknown_state_filters=unknown)
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            Listed(
                transactional_id=listed.transactional_id,
                producer_id=listed.producer_id,
                transaction_state=listed.state.title,
            )
            for listed in transactions
        ],
    )


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[TransactionDescription], bool]:
    states = {_STATES.get(name) for name in request.state_filters}
    producer_ids = set(request.producer_id_filters)
    longer_than_ms = request.duration_filter
    matches = matcher(request.transactional_id_pattern) if request.transactional_id_pattern else None

    def passes(listed: TransactionDescription) -> bool:
        return (
            listed.state is not TransactionState.DEAD
            and (not states or listed.state in states)
            and (not producer_ids or listed.producer_id in producer_ids)
            and (longer_than_ms < 0 or now_ms - listed.started_ms > longer_than_ms)
            and (matches is None or matches(listed.transactional_id))
        )

    return passes
