"""ListConfigResources, 0 to 1: what has settings (KIP-1142).

Version 0 asks for client metrics, which there are none of. Topics and this broker are there.
Its loggers have no settings here, nor have groups, so none is listed.
"""

from __future__ import annotations

from typing import Final

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from logd.api.handlers.describe_configs import BROKER, TOPIC
from logd.api.request.context import RequestContext

REQUEST = ListConfigResourcesRequest

BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32
KNOWN: Final = frozenset((TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP))


def handle(request: ListConfigResourcesRequest, context: RequestContext) -> ListConfigResourcesResponse:
    """Return the resources of the named types, or of all types if none is named.

    A type that does not exist is answered with UNSUPPORTED_VERSION, as in Kafka.
    """
    types = (set(request.resource_types) or KNOWN) if context.version else {CLIENT_METRICS}
    if types - KNOWN:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    broker = context.broker
    names = {BROKER: [str(broker.node_id)], TOPIC: list(broker.catalog.topics)}
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in names
            if kind in types
            for name in names[kind]
        ]
    )
