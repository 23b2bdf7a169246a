"""AllocateProducerIds, 0: a block of producer ids for a broker (KIP-730)."""

from __future__ import annotations

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from logd.api.cluster_member import controlling
from logd.api.request.context import RequestContext

REQUEST = AllocateProducerIdsRequest


async def handle(request: AllocateProducerIdsRequest, context: RequestContext) -> AllocateProducerIdsResponse:
    """Answer once it is written that they are given."""
    try:
        decision = await controlling(context.broker).do(
            lambda core: core.allocate_producer_ids(request.broker_id, request.broker_epoch)
        )
    except KafkaError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    block = decision.answer
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.end - block.first)
