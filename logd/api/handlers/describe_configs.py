"""DescribeConfigs, 1 to 4: settings of topics and this broker, with sources, synonyms and types.

The broker is asked for by its id; an empty name asks for what was changed for all brokers.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from logd.api.broker_loggers import BROKER_LOGGER, described_loggers
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.broker.topics.configs import (
    Described,
    described_broker_configs,
    described_cluster_configs,
    described_topic_configs,
)
from logd.metadata.topic_names import check_name

REQUEST = DescribeConfigsRequest

TOPIC = 2
BROKER = 4


def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    """Answer resource by resource."""
    return DescribeConfigsResponse(
        results=[_describe(context.broker, resource, request) for resource in request.resources]
    )


def _describe(
    broker: Broker, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        if resource.resource_type == BROKER_LOGGER:
            keys = resource.configuration_keys
            result.configs = described_loggers(broker.node_id, resource.resource_name, keys)
            return result
        described = _resource_configs(broker, resource)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    names = resource.configuration_keys
    result.configs = [_config(config, request) for config in described if not names or config.key in names]
    return result


def _resource_configs(broker: Broker, resource: DescribeConfigsResource) -> list[Described]:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        check_name(name)
        overrides = broker.catalog.find(name).image.configs
        return described_topic_configs(overrides, broker.catalog.config_for(overrides), broker.config_layers)
    check_broker_resource(broker, resource.resource_type, name)
    layers = broker.config_layers
    return described_broker_configs(layers) if name else described_cluster_configs(layers)


def check_broker_resource(broker: Broker, resource_type: int, name: str) -> None:
    """Raise KafkaError(INVALID_REQUEST) unless this is the broker's own resource or that of all brokers."""
    check_is_broker(resource_type)
    if name not in ("", str(broker.node_id)):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"broker {name!r}: ask for {broker.node_id}, or all with an empty name"
        )


def check_is_broker(resource_type: int) -> None:
    """Raise KafkaError(INVALID_REQUEST) for a resource that is no broker."""
    if resource_type != BROKER:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"resource type {resource_type}: only topics ({TOPIC}) and brokers ({BROKER}) have settings",
        )


def _config(config: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=config.key,
        value=config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=config.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in config.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=config.kind,
        documentation=config.documentation if request.include_documentation else None,
    )
