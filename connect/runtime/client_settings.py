"""Client settings from worker and connector configs, by role. `kafka_client.properties` parses them.

Later keys override earlier ones: the worker's own keys of connections, TLS and SASL; its `producer.*`,
`consumer.*` and `admin.*`; a connector's `producer.override.*` and `consumer.override.*` (KIP-458).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from kafka_client import NO_TIMEOUT_MS
from kafka_client.errors import ConfigError
from kafka_client.properties import CLIENT, CONSUMER, PRODUCER, ClientProperties
from kafka_client.security.keys import is_security_key
from kafka_client.security.token_settings import URL_KEY, check_override

_log = logging.getLogger(__name__)
Role = Literal["admin", "producer", "consumer"]


BOOTSTRAP = "bootstrap.servers"
_AHEAD_BYTES_MAX = 64 << 20
"""The consumer's own bound on the bytes that it fetches ahead."""


def is_client_key(key: str) -> bool:
    """Return True if this key of a worker is a setting of its clients."""
    return key in CLIENT or is_security_key(key)


def _layered(
    role: Role,
    worker: Mapping[str, Any],
    connector: Mapping[str, Any],
    defaults: Mapping[str, str] | None = None,
) -> ClientProperties:
    own = {key: value for key, value in worker.items() if is_client_key(key)}
    override = f"{role}.override.{URL_KEY}"
    # A connector's settings come over the network: they may name the worker's own URL, or one that is listed.
    if (url := connector.get(override)) and url != worker.get(URL_KEY):
        check_override(override, str(url))
    return ClientProperties.of(
        ("", {**(defaults or {}), **own}), (f"{role}.", worker), (f"{role}.override.", connector)
    )


def _with_warnings(properties: ClientProperties, *effective: Collection[str]) -> ClientProperties:
    properties.tell_rest({*CLIENT, BOOTSTRAP, *(key for keys in effective for key in keys)})
    return properties


def client_arguments(
    worker: Mapping[str, Any], connector: Mapping[str, Any] | None = None, role: Role = "admin"
) -> dict[str, Any]:
    """Return the arguments of `Client` for a worker, or a connector in it, in this role."""
    return _layered(role, worker, connector or {}).client()


def cluster_of(
    worker: Mapping[str, Any], connector: Mapping[str, Any], role: Role, default: Sequence[str]
) -> list[str]:
    """Return the brokers, `host:port`, of the cluster that a connector's clients of this role begin with.

    `default` are the worker's. As in Kafka, each role's override counts for this role alone (KIP-458). Raises
    ConfigError for an override without a broker.
    """
    properties = _layered(role, worker, connector)
    if BOOTSTRAP not in properties.values:
        return list(default)
    text = properties.values[BOOTSTRAP]
    if servers := [each.strip() for each in text.split(",") if each.strip()]:
        return servers
    raise ConfigError(properties.written[BOOTSTRAP], text, "must name a broker, host:port")


def producer_arguments(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `BatchProducer` for a source task."""
    # As in Kafka's Connect, sends wait for an unreachable broker without a time limit.
    properties = _layered("producer", worker, connector, {"delivery.timeout.ms": str(NO_TIMEOUT_MS)})
    return _with_warnings(properties, PRODUCER).producer()


def transactional_arguments(
    worker: Mapping[str, Any], connector: Mapping[str, Any], transactional_id: str
) -> dict[str, Any]:
    """Return the arguments of `TransactionalProducer` for an exactly-once source task.

    As in Kafka, the id is the worker's to choose, and settings that exclude transactions are ignored.
    """
    properties = _layered("producer", worker, connector, {"delivery.timeout.ms": str(NO_TIMEOUT_MS)})
    values = dict(properties.values)
    for key, needed in (
        ("transactional.id", transactional_id),
        ("enable.idempotence", "true"),
        ("acks", "all"),
    ):
        value = values.get(key)
        if value is not None and value.strip().lower() not in (needed, "-1" if key == "acks" else needed):
            _log.warning(
                "%s=%s is ignored: with exactly-once source support it is %s",
                properties.written.get(key, key),
                value,
                needed,
            )
        values[key] = needed
    return ClientProperties.of(("", values)).transactional_producer()


def consumer_settings(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, str]:
    """Return a sink's consumer settings, by Kafka's keys."""
    return dict(_layered("consumer", worker, connector).values)


def consumer_arguments(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Consumer` for a sink task; as in Kafka, it starts at the earliest offset.

    `fetch.max.bytes` bounds what the consumer fetches ahead too, so that it bounds the memory of a task whose
    target is slow.
    """
    properties = _layered("consumer", worker, connector, {"auto.offset.reset": "earliest"})
    arguments = _with_warnings(properties, CONSUMER, ("group.id",)).consumer()
    if "fetch_max_bytes" in arguments:
        arguments["buffer_max_bytes"] = min(max(arguments["fetch_max_bytes"], 1), _AHEAD_BYTES_MAX)
    return arguments


def put_records_max(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> int | None:
    """Return `max.poll.records`, the bound on the records of one `put`, or None if it is not set.

    Raises ConfigError if it is not a positive number.
    """
    value = consumer_settings(worker, connector).get("max.poll.records")
    if value is None:
        return None
    if not value.strip().isdecimal() or int(value) < 1:
        raise ConfigError("max.poll.records", value, "must be a positive number")
    return int(value)


def group_id(connector: str, worker: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Return the group of a sink connector: `connect-<name>` unless overridden."""
    return consumer_settings(worker, config).get("group.id", f"connect-{connector}")
