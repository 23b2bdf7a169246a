"""EndTxn, 0 to 5: commit or abort.

The answer comes once the outcome is in the coordinator's log; markers follow right behind it. From version 5
on (KIP-890, transaction version 2) every transaction ends under an epoch of its own. The response gives the
producer id and epoch for the next transaction; a repeated request gets the same ones. Before version 2
PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from logd.api.request.context import RequestContext
from logd.api.transaction_codes import code_for
from logd.transactions import ProducerIdentity
from logd.transactions.transaction import EPOCH_BUMP_VERSION

REQUEST = EndTxnRequest

FENCED_FROM = 2
EPOCH_BUMP_FROM = 5


def handle(
    request: EndTxnRequest, context: RequestContext
) -> EndTxnResponse | Callable[[], Awaitable[EndTxnResponse]]:
    """Answer with a code, or with the next identity; at once where nothing has to be awaited."""
    try:
        after = context.broker.transactions.end_at_once(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=_client_version(context),
        )
    except KafkaError as error:
        return _refusal(error, context)
    if isinstance(after, ProducerIdentity):
        return _ended(after)
    return partial(_end, request, context) if after is None else partial(_answer_later, after, context)


async def _answer_later(after: Awaitable[ProducerIdentity], context: RequestContext) -> EndTxnResponse:
    try:
        return _ended(await after)
    except KafkaError as error:
        return _refusal(error, context)


async def _end(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    try:
        after = await context.broker.transactions.end(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=_client_version(context),
        )
    except KafkaError as error:
        return _refusal(error, context)
    return _ended(after)


def _client_version(context: RequestContext) -> int:
    return EPOCH_BUMP_VERSION if context.version >= EPOCH_BUMP_FROM else 0


def _ended(after: ProducerIdentity) -> EndTxnResponse:
    return EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.epoch)


def _refusal(error: KafkaError, context: RequestContext) -> EndTxnResponse:
    return EndTxnResponse(error_code=code_for(error, context.version, fenced_from=FENCED_FROM))
