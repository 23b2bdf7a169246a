"""Admin calls about configs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kafka_client.admin.base import AdminBase
from kafka_client.cluster.answers import refusal
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPICS_A_REQUEST = 200
"""Topics in one DescribeConfigs; a response has some 6 KB for each."""
DEFAULT_CONFIG = 5
"""The source of a value that is not set anywhere."""


class ResourceType(IntEnum):
    """The kind of resource that a config belongs to."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOp(IntEnum):
    """An operation of IncrementalAlterConfigs on a key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config value; `source` as in DescribeConfigs (1 topic, 4 static broker, 5 default ...).

    `default`: the value that holds if none is set, None if the broker does not report it or was not asked.
    """

    name: str
    value: str | None
    source: int = -1
    read_only: bool = False
    sensitive: bool = False
    default: str | None = None


class ConfigAdmin(AdminBase):
    """Configs of topics, brokers and groups; see `admin.Admin`."""

    async def describe_configs(
        self,
        name: str,
        type: ResourceType = ResourceType.TOPIC,
        *,
        keys: Sequence[str] | None = None,
        defaults: bool = False,
    ) -> dict[str, ConfigEntry]:
        """Return a resource's effective configs by key (`keys` None: all).

        A broker is named by its id; "" names the defaults of all brokers. `defaults`: ask for each entry's
        `default`, too.
        """
        resource = DescribeConfigsResource(
            resource_type=type, resource_name=name, configuration_keys=None if keys is None else list(keys)
        )

        async def ask() -> dict[str, ConfigEntry]:
            response: DescribeConfigsResponse = await self._client.request(
                DescribeConfigsRequest(resources=[resource], include_synonyms=defaults),
                node=_broker_of(name, type),
            )
            result = response.results[0]
            _raise_resource(result.error_code, result.error_message, name, type)
            return _entries(result)

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def describe_topics_configs(
        self, topics: Iterable[str], *, keys: Sequence[str] | None = None
    ) -> dict[str, dict[str, ConfigEntry] | KafkaError]:
        """Return the configs of many topics, or a topic's error; ask for `TOPICS_A_REQUEST` at a time."""
        configs: dict[str, dict[str, ConfigEntry] | KafkaError] = {}
        names = list(topics)
        for start in range(0, len(names), TOPICS_A_REQUEST):
            configs |= await self._describe_topics(names[start : start + TOPICS_A_REQUEST], keys)
        return configs

    async def _describe_topics(
        self, topics: Sequence[str], keys: Sequence[str] | None
    ) -> dict[str, dict[str, ConfigEntry] | KafkaError]:
        resources = [
            DescribeConfigsResource(
                resource_type=ResourceType.TOPIC,
                resource_name=name,
                configuration_keys=None if keys is None else list(keys),
            )
            for name in topics
        ]

        async def ask() -> dict[str, dict[str, ConfigEntry] | KafkaError]:
            response: DescribeConfigsResponse = await self._client.request(
                DescribeConfigsRequest(resources=resources)
            )
            return {r.resource_name: _entries_or_error(r) for r in response.results}

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def incremental_alter_configs(
        self,
        name: str,
        changes: Mapping[str, str | tuple[ConfigOp, str] | None],
        type: ResourceType = ResourceType.TOPIC,
        *,
        validate_only: bool = False,
    ) -> None:
        """Change keys of a resource: to a value, by None to the default, or a list by (operation, value)."""
        resource = AlterConfigsResource(
            resource_type=type,
            resource_name=name,
            configs=[_alterable(key, change) for key, change in changes.items()],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        node = _broker_of(name, type)
        response: IncrementalAlterConfigsResponse
        if node is None:
            response = await self._ask_controller(request)
        else:
            response = await self._client.request(request, node=node)
        for result in response.responses:
            _raise_resource(result.error_code, result.error_message, name, type)


def _entries(result: DescribeConfigsResult) -> dict[str, ConfigEntry]:
    return {
        c.name: ConfigEntry(c.name, c.value, c.config_source, c.read_only, c.is_sensitive, _default_of(c))
        for c in result.configs
    }


def _default_of(config: DescribeConfigsResourceResult) -> str | None:
    if config.config_source == DEFAULT_CONFIG:
        return config.value
    return next((each.value for each in config.synonyms if each.source == DEFAULT_CONFIG), None)


def _entries_or_error(result: DescribeConfigsResult) -> dict[str, ConfigEntry] | KafkaError:
    if not result.error_code:
        return _entries(result)
    name = result.resource_name
    return refusal(result.error_code, f"configs of topic {name!r}", name, result.error_message)


def _alterable(key: str, change: str | tuple[ConfigOp, str] | None) -> AlterableConfig:
    if isinstance(change, tuple):
        return AlterableConfig(name=key, config_operation=change[0], value=change[1])
    operation = ConfigOp.DELETE if change is None else ConfigOp.SET
    return AlterableConfig(name=key, config_operation=operation, value=change)


def _broker_of(name: str, type: ResourceType) -> int | None:
    """Return the only broker that knows the resource, or None for any broker."""
    return int(name) if type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name else None


def _raise_resource(code: int, message: str | None, name: str, type: ResourceType) -> None:
    if code:
        error = refusal(code, f"configs of {type.name.lower()} {name!r}", name, message)
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
        # Not retriable here: a missing topic will not appear by asking again.
        final = KafkaError(error.code, error.message)
        final.broker_message = message
        raise final
