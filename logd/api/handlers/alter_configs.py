"""AlterConfigs, 0 to 2: replaces all settings of a resource; deprecated by IncrementalAlterConfigs."""

from __future__ import annotations

from collections import Counter

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from logd.api.handlers.incremental_alter_configs import alter_resource, check_named_once
from logd.api.request.context import RequestContext
from logd.broker.topics.configs import Alteration, Operation

REQUEST = AlterConfigsRequest


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Answer resource by resource."""
    responses = []
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        alterations = [Alteration(config.name, Operation.SET, config.value) for config in resource.configs]
        try:
            check_named_once(times, resource.resource_type, resource.resource_name)
            await alter_resource(
                context.broker,
                resource.resource_type,
                resource.resource_name,
                alterations,
                validate_only=request.validate_only,
                keep=False,
            )
        except KafkaError as error:
            response.error_code, response.error_message = error.code, error.message
        responses.append(response)
    return AlterConfigsResponse(responses=responses)


def refused(request: AlterConfigsRequest, code: ErrorCode) -> AlterConfigsResponse:
    """Return the response for when the controller cannot be reached."""
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=code,
            )
            for resource in request.resources
        ]
    )
