"""Listeners of the REST interface, their TLS, and the address that other workers use."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connect.config.rest import RestConfig
from connect.errors import ConfigError
from kafka_client.security.context import make_context, make_server_context
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.tls import TlsSettings, parse_tls

_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class Listener:
    """An address to listen at."""

    scheme: str
    host: str
    """Empty for all interfaces."""
    port: int
    """0 for any that is free."""

    @property
    def address(self) -> str:
        """The address as `host:port`, which HttpServer takes."""
        host = self.host or "0.0.0.0"
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_listener(text: str) -> Listener:
    """Return the listener of `http://host:port`, which RestConfig has checked."""
    scheme, _, address = text.partition("://")
    host, _, port = address.rstrip("/").rpartition(":")
    return Listener(scheme.lower(), host.removeprefix("[").removesuffix("]"), int(port))


def server_tls(raw: Mapping[str, Any], prefix: str) -> ssl.SSLContext:
    """Return the TLS of `https` listeners: keys with `prefix` if there are any, else those without.

    Raises ConfigError for settings that cannot be used.
    """
    values = _ssl_values(raw, prefix)
    wish = str(values.get("ssl.client.auth", "none")).lower()
    if wish not in _CLIENT_AUTH:
        raise ConfigError("ssl.client.auth", wish, f"must be one of {', '.join(_CLIENT_AUTH)}")
    return make_server_context(_tls_settings(values), _CLIENT_AUTH[wish])


def client_tls(raw: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the TLS of requests to other workers, by the same settings as that of `https` listeners."""
    return make_context(_tls_settings(_ssl_values(raw, "listeners.https.")))


def _ssl_values(raw: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """Return the `ssl.*` keys; keys with the prefix replace all others, as in Kafka."""
    own = {key.removeprefix(prefix): str(each) for key, each in raw.items() if key.startswith(prefix)}
    return own or {key: str(each) for key, each in raw.items() if key.startswith("ssl.")}


def _tls_settings(values: Mapping[str, str]) -> TlsSettings:
    return parse_tls(SecurityKeys(values))


def advertised_url(config: RestConfig, bound: list[Listener]) -> str:
    """Return the address that other workers and clients use; `bound` are the listeners with their ports.

    As in Kafka, it is that of `rest.advertised.*`, else of the first `http` listener, else of the first.
    """
    wish = (config.rest_advertised_listener or "").lower()
    order = [each for each in bound if each.scheme == (wish or "http")] or bound
    chosen = order[0]
    host = config.rest_advertised_host_name or chosen.host
    if host in ("", "0.0.0.0", "::"):
        host = socket.gethostname()
    port = config.rest_advertised_port or chosen.port
    return f"{chosen.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
