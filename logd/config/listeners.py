"""Listeners: where the broker binds, and the address clients are told.

Today only PLAINTEXT is served; a listener of another security protocol is refused rather than opened in the
clear.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka_client.errors import ConfigError
from logd.config.broker import BrokerConfig

_LISTENER = re.compile(r"([A-Za-z0-9_]+)://(\[[^\]]*\]|[^:/]*):(\d{1,5})")
_WILDCARDS = ("", "0.0.0.0", "::")


class Endpoint(NamedTuple):
    """A listener's name, host and port. When binding, an empty host is every address, port 0 any free one."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def bound_endpoints(config: BrokerConfig) -> list[Endpoint]:
    """Where to listen, in the order given; ConfigError for what cannot be served."""
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
        if protocol != "PLAINTEXT":
            raise ConfigError("listeners", endpoint.listener, "a listener of protocol PLAINTEXT")
    if not served:
        raise ConfigError("listeners", ",".join(config.listeners), "at least one listener for clients")
    return served


def advertised_endpoints(config: BrokerConfig, bound: Sequence[Endpoint]) -> list[Endpoint]:
    """The address of each bound listener as clients are told it; ``bound`` carries the real ports."""
    given = {
        endpoint.listener: endpoint
        for endpoint in _parse("advertised.listeners", config.advertised_listeners or ())
    }
    names = [endpoint.listener for endpoint in bound]
    for name in given:
        if name not in names and name not in config.controller_listener_names:
            raise ConfigError("advertised.listeners", name, "a name that listeners has: " + ", ".join(names))
    return [_advertised(endpoint, given.get(endpoint.listener)) for endpoint in bound]


def shifted(key: str, texts: Iterable[str], by: int) -> str:
    """The same listeners on ports that are higher; 0, any free one, stays. ConfigError."""
    found = [endpoint._replace(port=endpoint.port and endpoint.port + by) for endpoint in _parse(key, texts)]
    for endpoint in found:
        if endpoint.port > 65535:
            raise ConfigError(key, f"{endpoint.listener}://{endpoint}", "a port up to 65535")
    return ",".join(f"{endpoint.listener}://{endpoint}" for endpoint in found)


def _advertised(bound: Endpoint, given: Endpoint | None) -> Endpoint:
    host, port = (given.host, given.port) if given is not None else (bound.host, bound.port)
    if host in _WILDCARDS:
        if given is not None:
            raise ConfigError("advertised.listeners", str(given), "a host that clients can reach")
        host = socket.gethostname()
    return Endpoint(bound.listener, host, port or bound.port)


def _parse(key: str, texts: Iterable[str]) -> list[Endpoint]:
    endpoints = []
    for text in texts:
        found = _LISTENER.fullmatch(text)
        if found is None or int(found[3]) > 65535:
            raise ConfigError(key, text, "NAME://host:port, such as PLAINTEXT://127.0.0.1:9092")
        endpoints.append(Endpoint(found[1].upper(), found[2].strip("[]"), int(found[3])))
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
