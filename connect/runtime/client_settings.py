"""The client keys in worker and connector configs, by role. `kafka_client.properties` reads them.

Strongest last: the worker's own keys of connections, TLS and SASL; its `producer.*`, `consumer.*` and
`admin.*`; a connector's `producer.override.*` and `consumer.override.*` (KIP-458).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from kafka_client import NO_TIMEOUT_MS
from kafka_client.properties import CLIENT, CONSUMER, PRODUCER, ClientProperties
from kafka_client.security.keys import is_security_key

Role = Literal["admin", "producer", "consumer"]


def is_client_key(key: str) -> bool:
    """Whether the worker's key is for its clients."""
    return key in CLIENT or is_security_key(key)


def _layered(
    role: Role,
    worker: Mapping[str, Any],
    connector: Mapping[str, Any],
    defaults: Mapping[str, str] | None = None,
) -> ClientProperties:
    own = {key: value for key, value in worker.items() if is_client_key(key)}
    return ClientProperties.of(
        ("", {**(defaults or {}), **own}), (f"{role}.", worker), (f"{role}.override.", connector)
    )


def _told(given: ClientProperties, *effective: Collection[str]) -> ClientProperties:
    given.tell_rest({*CLIENT, *(key for keys in effective for key in keys)})
    return given


def client_arguments(
    worker: Mapping[str, Any], connector: Mapping[str, Any] | None = None, role: Role = "admin"
) -> dict[str, Any]:
    """Arguments of `Client` for what a worker, or a connector in it, does in this role."""
    return _layered(role, worker, connector or {}).client()


def producer_arguments(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `BatchProducer` for a source task."""
    # A broker that is away is waited for, as Kafka's Connect does.
    given = _layered("producer", worker, connector, {"delivery.timeout.ms": str(NO_TIMEOUT_MS)})
    return _told(given, PRODUCER).producer()


def consumer_settings(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, str]:
    """A sink's consumer keys, by Kafka's names."""
    return dict(_layered("consumer", worker, connector).values)


def consumer_arguments(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `Consumer` for a sink task; sinks start at the earliest offset, as Kafka's do."""
    given = _layered("consumer", worker, connector, {"auto.offset.reset": "earliest"})
    return _told(given, CONSUMER, ("group.id",)).consumer()


def group_id(connector: str, worker: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The group of a sink connector: `connect-<name>` unless overridden."""
    return consumer_settings(worker, config).get("group.id", f"connect-{connector}")
