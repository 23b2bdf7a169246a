"""AlterClientQuotas, 0 to 1: the controller sets and removes quotas (KIP-546, KIP-612)."""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntryData,
)
from logd.api.request.context import RequestContext
from logd.metadata.controller.client_quotas import Alteration, Altered, alter_quotas
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision

REQUEST = AlterClientQuotasRequest


async def handle(request: AlterClientQuotasRequest, context: RequestContext) -> AlterClientQuotasResponse:
    """Answer entity by entity."""
    alterations = [
        Alteration(
            names=tuple((each.entity_type, each.entity_name) for each in entry.entity),
            ops=[(op.key, None if op.remove else op.value) for op in entry.ops],
        )
        for entry in request.entries
    ]

    def alteration(controller: Controller) -> Decision[Altered]:
        return alter_quotas(controller.image, alterations)

    try:
        altered = await context.broker.catalog.decide(alteration, validate_only=request.validate_only)
    except KafkaError as error:
        return refused(request, error.code)
    return AlterClientQuotasResponse(
        entries=[
            AlteredEntryData(
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.message if error else None,
                entity=entry.entity,
            )
            for entry, error in zip(request.entries, altered, strict=True)
        ]
    )


def refused(request: AlterClientQuotasRequest, code: ErrorCode) -> AlterClientQuotasResponse:
    """Return the response for when the controller cannot be reached, or cannot write."""
    return AlterClientQuotasResponse(
        entries=[AlteredEntryData(error_code=code, entity=entry.entity) for entry in request.entries]
    )
