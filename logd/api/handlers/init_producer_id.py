"""InitProducerId, 0 to 5: a producer id for an idempotent producer, or the next epoch of a transactional id.

From version 3 on a producer that goes on after an error names the identity it has (KIP-360). A transaction
that is open under the transactional id is aborted, and the answer is CONCURRENT_TRANSACTIONS: the producer
asks again. Before version 4 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH. Version 6 (KIP-939) is not stable yet.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from logd.api.request.context import RequestContext
from logd.api.transaction_codes import code_for
from logd.transactions import ProducerIdentity

REQUEST = InitProducerIdRequest

FENCED_FROM = 4


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """Return the producer id and epoch to write with."""
    try:
        identity = await _identity(request, context)
    except KafkaError as error:
        code = code_for(error, context.version, fenced_from=FENCED_FROM)
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=identity.producer_id, producer_epoch=identity.epoch)


async def _identity(request: InitProducerIdRequest, context: RequestContext) -> ProducerIdentity:
    broker = context.broker
    if request.transactional_id is None:
        return ProducerIdentity(await broker.producer_ids.take(), 0)
    named = ProducerIdentity(request.producer_id, request.producer_epoch)
    if (named.producer_id < 0) is not (named.epoch < 0):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id without its epoch")
    return await broker.transactions.init_producer(
        request.transactional_id, request.transaction_timeout_ms, named if named.epoch >= 0 else None
    )
