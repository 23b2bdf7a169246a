"""The security of one listener: its TLS context and its logins, by Kafka's keys.

Passwords of PLAIN are in `listener.name.NAME.plain.sasl.jaas.config`, as options `user_NAME="PASSWORD"`.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_client.errors import ConfigError
from kafka_client.security.context import make_server_context
from kafka_client.security.jaas import JaasError, parse_jaas
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.secret import HIDDEN, Secret
from kafka_client.security.tls import parse_tls
from logd.config.security_keys import JAAS_KEY, LISTENER_PREFIX, keys_of_listener
from logd.security.login import NewExchange
from logd.security.plain import PlainServerExchange

MECHANISMS = ("PLAIN",)
"""The mechanisms that a listener can enable."""
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_USER_OPTION = "user_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """The TLS and the logins that a listener asks of its peers."""

    tls: ssl.SSLContext | None = None
    """The TLS context; None on a listener without TLS."""
    mechanisms: Mapping[str, NewExchange] = field(default_factory=dict)
    """The enabled SASL mechanisms by name; empty on a listener without SASL."""


def listener_security(properties: Mapping[str, str], listener: str, protocol: str) -> ListenerSecurity | None:
    """Return the security of a listener, None for PLAINTEXT. Reads key stores. Raises ConfigError."""
    if protocol == "PLAINTEXT":
        return None
    values, written = keys_of_listener(properties, listener)
    return ListenerSecurity(
        tls=_tls(values, written) if protocol in ("SSL", "SASL_SSL") else None,
        mechanisms=_mechanisms(values, written, listener) if protocol.startswith("SASL_") else {},
    )


def _tls(values: Mapping[str, str], written: Mapping[str, str]) -> ssl.SSLContext:
    keys = SecurityKeys({key: value for key, value in values.items() if key.startswith("ssl.")}, "", written)
    client_auth = keys.choice("ssl.client.auth", tuple(_CLIENT_AUTH), "none")
    return make_server_context(parse_tls(keys), _CLIENT_AUTH[client_auth])


def _mechanisms(
    values: Mapping[str, str], written: Mapping[str, str], listener: str
) -> Mapping[str, NewExchange]:
    key = "sasl.enabled.mechanisms"
    names = [name.strip() for name in values.get(key, "").split(",") if name.strip()]
    if not names or any(name not in MECHANISMS for name in names):
        raise ConfigError(written.get(key, key), values.get(key, ""), "one of " + ", ".join(MECHANISMS))
    passwords = _passwords(values, f"{LISTENER_PREFIX}{listener.lower()}.{JAAS_KEY}")
    return {"PLAIN": lambda: PlainServerExchange(passwords)}


def _passwords(values: Mapping[str, str], key: str) -> Mapping[str, Secret]:
    """Return the passwords of PLAIN by user. Errors quote none of them."""
    try:
        entry = parse_jaas(values.get(JAAS_KEY, ""))
    except JaasError as error:
        raise ConfigError(key, HIDDEN, str(error)) from None
    if entry.module != "PlainLoginModule":
        raise ConfigError(key, HIDDEN, "must name PlainLoginModule")
    passwords = {
        name.removeprefix(_USER_OPTION): Secret(value)
        for name, value in entry.options.items()
        if name.startswith(_USER_OPTION) and value
    }
    if not passwords:
        raise ConfigError(key, HIDDEN, 'needs users, as options user_NAME="PASSWORD"')
    return passwords
