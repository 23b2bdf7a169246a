"""IncrementalAlterConfigs, 0 to 1: set, delete, append to or subtract from single settings (KIP-339)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from logd.api.broker_loggers import BROKER_LOGGER, alter_loggers
from logd.api.handlers.describe_configs import TOPIC, check_broker_resource, check_is_broker
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.broker.topics.configs import BROKER_KEYS, Alteration, Operation, altered, check_dynamic
from logd.config.load import unknown_setting
from logd.config.setting import format_value
from logd.config.topic import TOPIC_SETTINGS
from logd.metadata.topic_names import check_name

log = logging.getLogger("logd.broker")

REQUEST = IncrementalAlterConfigsRequest


async def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Answer resource by resource; what is refused for one leaves the others."""
    responses = []
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        alterations = [
            Alteration(config.name, config.config_operation, config.value) for config in resource.configs
        ]
        responses.append(response)
        try:
            check_named_once(times, resource.resource_type, resource.resource_name)
            if resource.resource_type == BROKER_LOGGER:
                alter_loggers(
                    context.broker.node_id,
                    resource.resource_name,
                    alterations,
                    validate_only=request.validate_only,
                )
                continue
            await alter_resource(
                context.broker,
                resource.resource_type,
                resource.resource_name,
                alterations,
                validate_only=request.validate_only,
            )
        except KafkaError as error:
            response.error_code, response.error_message = error.code, error.message
    return IncrementalAlterConfigsResponse(responses=responses)


def is_local(request: IncrementalAlterConfigsRequest) -> bool:
    """Return True if the request is about loggers only: their levels belong to the broker that is asked."""
    return {resource.resource_type for resource in request.resources} == {BROKER_LOGGER}


def refused(request: IncrementalAlterConfigsRequest, code: ErrorCode) -> IncrementalAlterConfigsResponse:
    """Return the response for when the controller cannot be reached."""
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=code,
            )
            for resource in request.resources
        ]
    )


def check_named_once(times: Counter[tuple[int, str]], resource_type: int, name: str) -> None:
    """Raise KafkaError(INVALID_REQUEST) for a resource that a request names several times."""
    if (count := times[resource_type, name]) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"resource {name!r} of type {resource_type} stands in the request {count} times: name it once",
        )


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
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "topics have no common settings: name a topic")
        check_name(name)
        topic = broker.catalog.find(name)

        def alter_topic(current: Mapping[str, str]) -> dict[str, str]:
            effective = {
                key: format_value(getattr(topic.config, declared.field))
                for key, declared in TOPIC_SETTINGS.items()
            }
            return altered(current if keep else {}, effective, TOPIC_SETTINGS, alterations)

        await broker.catalog.configure(topic, alter_topic, validate_only=validate_only)
        return
    if broker.cluster.is_standalone:
        check_broker_resource(broker, resource_type, name)
    else:
        _check_is_alive(broker, resource_type, name)

    def alter_broker(current: Mapping[str, str]) -> dict[str, str]:
        effective = broker.config_layers.values(name)
        configs = altered(current if keep else {}, effective, BROKER_KEYS, alterations)
        check_dynamic(name, configs)
        return configs

    await broker.change_configs(name, alter_broker, validate_only=validate_only)
    for key, operation, _ in alterations:
        if key not in BROKER_KEYS and operation == Operation.SET and not validate_only:
            log.warning("%s is kept, as it may be somebody else's", unknown_setting(key))


def _check_is_alive(broker: Broker, resource_type: int, name: str) -> None:
    """Raise KafkaError(INVALID_REQUEST) unless the broker is alive: the controller takes changes for all
    brokers.
    """
    check_is_broker(resource_type)
    alive = broker.image.brokers
    if name and name not in map(str, alive):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"broker {name!r} is not alive: ask for one of {sorted(alive)}, or all with an empty name",
        )
