"""Listeners: the addresses that the broker binds, and those that it advertises to clients.

`logd.security.listener_security` has what TLS and SASL of a listener need.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka_client.errors import ConfigError
from logd.config.broker import BrokerConfig
from logd.config.replication import SECURITY_PROTOCOLS

_LISTENER = re.compile(r"([A-Za-z0-9_]+)://(\[[^\]]*\]|[^:/]*):(\d{1,5})")
_WILDCARDS = ("", "0.0.0.0", "::")


class Endpoint(NamedTuple):
    """A listener's name, host and port. To bind, an empty host is every address, and port 0 any free port."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def bound_endpoints(config: BrokerConfig) -> list[Endpoint]:
    """Return the addresses to bind, in the order of `listeners`.

    Raises ConfigError for a listener that cannot be served, and if none is left for clients.
    """
    endpoints = _parse("listeners", config.listeners)
    protocols = _protocols(config.listener_security_protocol_map)
    served = [endpoint for endpoint in endpoints if endpoint.listener not in config.controller_listener_names]
    for endpoint in served:
        protocol = protocols.get(endpoint.listener)
        if protocol is None:
            raise ConfigError(
                "listeners",
                endpoint.listener,
                "a name that listener.security.protocol.map knows, such as PLAINTEXT",
            )
        if protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(
                "listener.security.protocol.map",
                f"{endpoint.listener}:{protocol}",
                "one of " + ", ".join(SECURITY_PROTOCOLS),
            )
    if not served:
        raise ConfigError("listeners", ",".join(config.listeners), "at least one listener for clients")
    if config.is_clustered:
        inter_broker_listener(config, [endpoint.listener for endpoint in served])
    return served


def inter_broker_listener(config: BrokerConfig, listeners: Sequence[str]) -> str:
    """Return the name of the listener by which brokers talk to each other; `listeners` are the bound ones.

    Raises ConfigError in a cluster; a standalone broker ignores wrong settings.
    """
    name, protocol = config.inter_broker_listener_name, config.security_inter_broker_protocol
    if not config.is_clustered:
        return (name or protocol or listeners[0]).upper()
    key = "inter.broker.listener.name"
    if protocol is not None:
        if name is not None:
            raise ConfigError(
                "security.inter.broker.protocol",
                protocol,
                f"nothing beside {key}={name}: take one of the two out",
            )
        key, name = "security.inter.broker.protocol", protocol
    if name is None:
        return listeners[0]
    if name.upper() not in listeners:
        raise ConfigError(key, name, "a name that listeners has: " + ", ".join(listeners))
    return name.upper()


def security_protocols(config: BrokerConfig) -> dict[str, str]:
    """Return the security protocol of each listener's name. Raises ConfigError."""
    return _protocols(config.listener_security_protocol_map)


def advertised_endpoints(config: BrokerConfig, bound: Sequence[Endpoint]) -> list[Endpoint]:
    """Return the address that each bound listener advertises to clients; ``bound`` has the real ports."""
    configured = {
        endpoint.listener: endpoint
        for endpoint in _parse("advertised.listeners", config.advertised_listeners or ())
    }
    names = [endpoint.listener for endpoint in bound]
    for name in configured:
        if name not in names and name not in config.controller_listener_names:
            raise ConfigError("advertised.listeners", name, "a name that listeners has: " + ", ".join(names))
    return [_advertised(endpoint, configured.get(endpoint.listener)) for endpoint in bound]


def shifted(key: str, texts: Iterable[str], by: int) -> str:
    """Return the listeners with their ports raised by ``by``; port 0, any free port, stays.

    Raises ConfigError for a text that is no listener, and for a port above 65535.
    """
    listeners = [
        endpoint._replace(port=endpoint.port and endpoint.port + by) for endpoint in _parse(key, texts)
    ]
    for endpoint in listeners:
        if endpoint.port > 65535:
            raise ConfigError(key, f"{endpoint.listener}://{endpoint}", "a port up to 65535")
    return ",".join(f"{endpoint.listener}://{endpoint}" for endpoint in listeners)


def _advertised(bound: Endpoint, configured: Endpoint | None) -> Endpoint:
    host, port = (configured.host, configured.port) if configured is not None else (bound.host, bound.port)
    if host in _WILDCARDS:
        if configured is not None:
            raise ConfigError("advertised.listeners", str(configured), "a host that clients can reach")
        host = socket.gethostname()
    return Endpoint(bound.listener, host, port or bound.port)


def _parse(key: str, texts: Iterable[str]) -> list[Endpoint]:
    endpoints = []
    for text in texts:
        match = _LISTENER.fullmatch(text)
        if match is None or int(match[3]) > 65535:
            raise ConfigError(key, text, "NAME://host:port, such as PLAINTEXT://127.0.0.1:9092")
        endpoints.append(Endpoint(match[1].upper(), match[2].strip("[]"), int(match[3])))
    names = [endpoint.listener for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise ConfigError(key, ",".join(texts), "each listener name once")
    return endpoints


def _protocols(mapping: Iterable[str]) -> dict[str, str]:
    protocols = {}
    for pair in mapping:
        name, colon, protocol = pair.partition(":")
        if not colon:
            raise ConfigError("listener.security.protocol.map", pair, "NAME:PROTOCOL")
        protocols[name.upper()] = protocol.upper()
    return protocols
