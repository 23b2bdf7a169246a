"""InitProducerId, 0 to 5: a new id for an idempotent producer (KIP-98).

A client that has used up its epochs (KIP-360) asks again and gets another id. Transactional ids are refused.
"""

from __future__ import annotations

import logging

from logd.api.context import RequestContext
from logd.errors import ErrorCode, KafkaError
from logd.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

REQUEST = InitProducerIdRequest

log = logging.getLogger("logd.api")


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """A producer id nobody had before, with epoch 0."""
    if request.transactional_id is not None:
        return _transactional(request.transactional_id, context)
    try:
        producer_id = await context.broker.producer_ids.take()
    except KafkaError as error:
        return _refused(error.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _transactional(transactional_id: str, context: RequestContext) -> InitProducerIdResponse:
    """The answer has no room for a text; this code is one that clients give up on at once."""
    if not transactional_id:
        return _refused(ErrorCode.INVALID_REQUEST)
    log.warning(
        "%s asked for transactional id %s; this broker serves no transactions",
        context.client_host,
        transactional_id,
    )
    return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
