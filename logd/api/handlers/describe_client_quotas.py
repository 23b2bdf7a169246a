"""DescribeClientQuotas, 0 to 1: the quotas of users, client ids and addresses (KIP-546, KIP-612).

The controller answers, so that a change shows at once.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from logd.api.request.context import RequestContext
from logd.metadata.controller.client_quotas import Component, describe_quotas

REQUEST = DescribeClientQuotasRequest


def handle(request: DescribeClientQuotasRequest, context: RequestContext) -> DescribeClientQuotasResponse:
    """Answer with the entities that match the filter; no entries beside an error."""
    components = [
        Component(type=each.entity_type, match_type=each.match_type, match=each.match)
        for each in request.components
    ]
    try:
        described = describe_quotas(context.broker.image, components, strict=request.strict)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=type, entity_name=name) for type, name in entity],
                values=[ValueData(key=key, value=quotas[key]) for key in sorted(quotas)],
            )
            for entity, quotas in described
        ],
    )


def refused(request: DescribeClientQuotasRequest, code: ErrorCode) -> DescribeClientQuotasResponse:
    """Return the response for when the controller cannot be reached."""
    return DescribeClientQuotasResponse(error_code=code, entries=None)
