"""IncrementalAlterConfigs, 0 to 1: set, delete, append to or subtract from single settings (KIP-339)."""

from __future__ import annotations

from collections.abc import Sequence

from logd.api.context import RequestContext
from logd.api.describe_configs import TOPIC, check_broker_resource
from logd.broker.broker import Broker
from logd.broker.configs import Alteration, altered, check_dynamic
from logd.broker.topic import check_name
from logd.config.broker import BROKER_SETTINGS
from logd.config.setting import format_value
from logd.config.topic import TOPIC_SETTINGS
from logd.errors import KafkaError
from logd.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

REQUEST = IncrementalAlterConfigsRequest


async def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Answer resource by resource; what is refused for one leaves the others."""
    responses = []
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        alterations = [
            Alteration(config.name, config.config_operation, config.value) for config in resource.configs
        ]
        try:
            await alter_resource(
                context.broker,
                resource.resource_type,
                resource.resource_name,
                alterations,
                validate_only=request.validate_only,
            )
        except KafkaError as error:
            response.error_code, response.error_message = error.code, error.message
        responses.append(response)
    return IncrementalAlterConfigsResponse(responses=responses)


async def alter_resource(
    broker: Broker,
    resource_type: int,
    name: str,
    alterations: Sequence[Alteration],
    *,
    validate_only: bool,
    keep: bool = True,
) -> None:
    """Change a topic's or a broker's settings; without ``keep`` the ones not named go. KafkaError."""
    if resource_type == TOPIC:
        check_name(name)
        topic = broker.catalog.find(name)
        effective = {
            key: format_value(getattr(topic.config, declared.field))
            for key, declared in TOPIC_SETTINGS.items()
        }
        configs = altered(topic.image.configs if keep else {}, effective, TOPIC_SETTINGS, alterations)
        broker.catalog.config_for(configs)
        if not validate_only:
            await broker.catalog.configure(topic, configs)
        return
    check_broker_resource(broker, resource_type, name)
    layers = broker.config_layers
    current = layers.changed.get(name, {}) if keep else {}
    configs = altered(current, layers.started_with, BROKER_SETTINGS, alterations)
    check_dynamic(configs)
    await broker.change_configs(name, configs, validate_only=validate_only)
