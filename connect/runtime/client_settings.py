"""Kafka's client keys, as they stand in worker and connector configs, to arguments of `logd.client`.

A worker's `producer.*` and `consumer.*` come first, a connector's `producer.override.*` and
`consumer.override.*` (KIP-458) over them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from connect.errors import ConfigError
from logd.client import NO_TIMEOUT_MS

_log = logging.getLogger(__name__)
_Table = dict[str, tuple[str, Callable[[str], Any]]]


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number") from None


def _acks(text: str) -> int:
    if text not in ("all", "-1", "0", "1"):
        raise ValueError("must be all, -1, 0 or 1")
    return -1 if text == "all" else int(text)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return parse


_CLIENT: _Table = {
    "client.id": ("client_id", str),
    "request.timeout.ms": ("request_timeout_ms", _whole),
    "metadata.max.age.ms": ("metadata_max_age_ms", _whole),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", _whole),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", _whole),
    "retry.backoff.ms": ("retry_backoff_ms", _whole),
}
CLIENT_KEYS = frozenset(_CLIENT)
"""Keys of the worker itself that are its clients'."""
_PRODUCER: _Table = {
    "acks": ("acks", _acks),
    "compression.type": ("compression_type", _one_of("none", "gzip", "snappy", "lz4", "zstd")),
    "linger.ms": ("linger_ms", _number),
    "batch.size": ("batch_size", _whole),
    "max.request.size": ("max_request_size", _whole),
    "enable.idempotence": ("enable_idempotence", _boolean),
    "buffer.memory": ("buffer_memory", _whole),
    "delivery.timeout.ms": ("delivery_timeout_ms", _whole),
    "max.in.flight.requests.per.connection": ("max_in_flight", _whole),
}
_CONSUMER: _Table = {
    "auto.offset.reset": ("auto_offset_reset", _one_of("none", "earliest", "latest")),
    "isolation.level": ("isolation_level", _one_of("read_committed", "read_uncommitted")),
    "session.timeout.ms": ("session_timeout_ms", _whole),
    "heartbeat.interval.ms": ("heartbeat_interval_ms", _whole),
    "max.poll.interval.ms": ("rebalance_timeout_ms", _whole),
    "group.instance.id": ("group_instance_id", str),
    "fetch.min.bytes": ("fetch_min_bytes", _whole),
    "fetch.max.wait.ms": ("fetch_max_wait_ms", _whole),
    "fetch.max.bytes": ("fetch_max_bytes", _whole),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", _whole),
}


def under(prefix: str, config: Mapping[str, Any]) -> dict[str, str]:
    """The keys that begin with `prefix`, without it."""
    return {key[len(prefix) :]: str(value) for key, value in config.items() if key.startswith(prefix)}


def _arguments(
    table: _Table, settings: Mapping[str, str], where: str, connector: Mapping[str, Any]
) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for key, value in settings.items():
        own = f"{where}override.{key}"
        shown = own if own in connector else where + key
        if key not in table:
            _log.warning("%s is not known to this worker and has no effect", shown)
            continue
        name, parse = table[key]
        try:
            arguments[name] = parse(value)
        except ValueError as e:
            raise ConfigError(shown, value, str(e)) from e
    return arguments


def client_arguments(worker: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `Client` from a worker's own keys."""
    return _arguments(_CLIENT, {k: str(v) for k, v in worker.items() if k in _CLIENT}, "", {})


def producer_arguments(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `BatchProducer` for a source task."""
    # A broker that is away is waited for, as Kafka's Connect does.
    settings = {"delivery.timeout.ms": str(NO_TIMEOUT_MS)}
    settings |= under("producer.", worker) | under("producer.override.", connector)
    return _arguments(_PRODUCER, settings, "producer.", connector)


def consumer_settings(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, str]:
    """A sink's consumer keys, by Kafka's names."""
    return under("consumer.", worker) | under("consumer.override.", connector)


def consumer_arguments(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `Consumer` for a sink task; sinks start at the earliest offset, as Kafka's do."""
    settings = {"auto.offset.reset": "earliest"} | consumer_settings(worker, connector)
    settings.pop("group.id", None)
    return _arguments(_CONSUMER, settings, "consumer.", connector)


def group_id(connector: str, worker: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The group of a sink connector: `connect-<name>` unless overridden."""
    return consumer_settings(worker, config).get("group.id", f"connect-{connector}")
