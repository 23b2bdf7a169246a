"""EndTxn, 0 to 5: commit or abort.

The answer comes once the outcome is in the coordinator's log; markers mostly are written by then too. From
version 5 on (KIP-890, transaction version 2) every transaction ends under an epoch of its own, and the answer
says what the next one is to be written with; asked again, it is the same. Before version 2 PRODUCER_FENCED is
INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.api.transaction_codes import code_for
from logd.errors import KafkaError
from logd.transactions import ProducerIdentity
from logd.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

REQUEST = EndTxnRequest

FENCED_FROM = 2
EPOCH_BUMP_FROM = 5


async def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    """Answer with a code, or with the next identity."""
    try:
        after = await context.broker.transactions.end(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=2 if context.version >= EPOCH_BUMP_FROM else 0,
        )
    except KafkaError as error:
        return EndTxnResponse(error_code=code_for(error, context.version, fenced_from=FENCED_FROM))
    return EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.epoch)
