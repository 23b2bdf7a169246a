"""Settings of what brokers call resources: topics, brokers and their loggers, groups, clients' metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kafka_client import ResourceType
from kafka_client.errors import KafkaError
from kafka_client.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kafka_client.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from millstream.kafka_tools.configs.entities import BROKER, DEFAULT, GROUP, LOGGER, METRICS, TOPIC
from millstream.kafka_tools.java.java_errors import COMMON, NO_NODE, JavaError, illegal_argument, timed_out
from millstream.kafka_tools.java.java_integers import parse_integer
from millstream.terminal.session import Session

TYPES = {
    TOPIC: ResourceType.TOPIC,
    BROKER: ResourceType.BROKER,
    LOGGER: ResourceType.BROKER_LOGGER,
    METRICS: ResourceType.CLIENT_METRICS,
    GROUP: ResourceType.GROUP,
}
SOURCES = (
    "UNKNOWN",
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
    "DYNAMIC_BROKER_LOGGER_CONFIG",
    "DYNAMIC_CLIENT_METRICS_CONFIG",
    "DYNAMIC_GROUP_CONFIG",
)
OWN = {TOPIC: 1, BROKER: 2, METRICS: 7, GROUP: 8}
"""The source of what is set on the resource itself; a logger's are all its own."""
OF_ALL_BROKERS = 3
LONGEST = 249
"""The most characters of a topic's name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting: its value, the value's source, and the other sources that have a value for it."""

    name: str
    value: str | None
    sensitive: bool
    source: int
    synonyms: str

    def __str__(self) -> str:
        return (
            f"{self.name}={_shown(self.value)} sensitive={str(self.sensitive).lower()} "
            f"synonyms={{{self.synonyms}}}"
        )


def _shown(value: str | None) -> str:
    return "null" if value is None else value


def check_name(type: str, name: str) -> None:
    """Raise JavaError if no resource of this type can have the name."""
    if type == TOPIC and name:
        check_topic_name(name)
    if type in (BROKER, LOGGER) and name != DEFAULT:
        try:
            parse_integer(name)
        except ValueError:
            raise illegal_argument(
                f"The entity name for {type} must be a valid integer broker id, found: {name}"
            ) from None


def check_topic_name(name: str) -> None:
    """Raise Kafka's InvalidTopicException, with its message, for an invalid topic name."""
    why = None
    if not name:
        why = "the empty string is not allowed"
    elif name in (".", ".."):
        why = f"'{name}' is not allowed"
    elif len(name) > LONGEST:
        why = f"the length of '{name}' is longer than the max allowed length {LONGEST}"
    elif re.fullmatch(r"[a-zA-Z0-9._-]+", name) is None:
        why = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if why is not None:
        raise JavaError(f"{COMMON}.errors.InvalidTopicException", f"Topic name is invalid: {why}")


async def read_entries(session: Session, type: str, name: str, *, everything: bool) -> list[Entry]:
    """Return settings sorted by name: those set on the resource itself, or with `everything` all."""
    check_name(type, name)
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=TYPES[type], resource_name=name, configuration_keys=None)
        ],
        include_synonyms=True,
    )
    node = int(name) if type in (BROKER, LOGGER) and name != DEFAULT else None
    if node is not None and node not in (await session.client.metadata((), refresh=True)).brokers:
        # Java's client waits for it, which it will not come by.
        error = timed_out(f"{NO_NODE}. Call: describeBrokerConfigs")
        error.from_future = True
        raise error

    async def ask() -> list[Entry]:
        response: DescribeConfigsResponse = await session.client.request(request, node=node)
        (result,) = response.results
        if result.error_code:
            error = KafkaError(result.error_code)
            error.broker_message = result.error_message
            raise error
        return [_entry(config) for config in result.configs]

    own = OF_ALL_BROKERS if type == BROKER and name == DEFAULT else OWN.get(type)
    entries = await session.client.retrying(ask)
    chosen = [entry for entry in entries if everything or own is None or entry.source == own]
    return sorted(chosen, key=lambda entry: entry.name)


def _entry(config: DescribeConfigsResourceResult) -> Entry:
    synonyms = ", ".join(f"{SOURCES[s.source]}:{s.name}={_shown(s.value)}" for s in config.synonyms)
    return Entry(config.name, config.value, config.is_sensitive, config.config_source, synonyms)


async def list_resources(session: Session, type: ResourceType) -> list[str]:
    """Return the names of the resources that have settings of their own (KIP-1142)."""
    request = ListConfigResourcesRequest(resource_types=[type])
    response: ListConfigResourcesResponse = await session.client.request(request)
    if response.error_code:
        raise KafkaError(response.error_code)
    return [each.resource_name for each in response.config_resources]
