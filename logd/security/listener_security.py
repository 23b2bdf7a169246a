"""The security of one listener: its TLS context and its logins, by Kafka's keys.

Passwords of PLAIN are in `listener.name.NAME.plain.sasl.jaas.config`, as options `user_NAME="PASSWORD"`.
Credentials of SCRAM are in the cluster's metadata.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from kafka_client.errors import ConfigError
from kafka_client.security.context import make_server_context
from kafka_client.security.jaas import JaasEntry, JaasError, parse_jaas
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.secret import HIDDEN, Secret
from kafka_client.security.tls import parse_tls
from logd.config.security_keys import JAAS_KEY, LISTENER_PREFIX, SCRAM_JAAS_KEYS, keys_of_listener
from logd.security.login import NewExchange
from logd.security.plain import PlainServerExchange
from logd.security.scram import ScramServerExchange
from logd.security.scram_credential import BY_LABEL, ScramMechanism
from logd.security.scram_users import ScramUsers

PLAIN = "PLAIN"
MECHANISMS = (PLAIN, *BY_LABEL)
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


def listener_security(
    properties: Mapping[str, str], listener: str, protocol: str, users: ScramUsers
) -> ListenerSecurity | None:
    """Return the security of a listener, None for PLAINTEXT. Reads key stores. Raises ConfigError.

    `users` log in by SCRAM.
    """
    if protocol == "PLAINTEXT":
        return None
    values, written = keys_of_listener(properties, listener)
    return ListenerSecurity(
        tls=_tls(values, written) if protocol in ("SSL", "SASL_SSL") else None,
        mechanisms=_mechanisms(values, written, listener, users) if protocol.startswith("SASL_") else {},
    )


def _tls(values: Mapping[str, str], written: Mapping[str, str]) -> ssl.SSLContext:
    keys = SecurityKeys({key: value for key, value in values.items() if key.startswith("ssl.")}, "", written)
    client_auth = keys.choice("ssl.client.auth", tuple(_CLIENT_AUTH), "none")
    return make_server_context(parse_tls(keys), _CLIENT_AUTH[client_auth])


def _mechanisms(
    values: Mapping[str, str], written: Mapping[str, str], listener: str, users: ScramUsers
) -> Mapping[str, NewExchange]:
    key = "sasl.enabled.mechanisms"
    names = [name.strip() for name in values.get(key, "").split(",") if name.strip()]
    if not names or any(name not in MECHANISMS for name in names):
        raise ConfigError(written.get(key, key), values.get(key, ""), "one of " + ", ".join(MECHANISMS))
    prefix = f"{LISTENER_PREFIX}{listener.lower()}."
    for scram_key in SCRAM_JAAS_KEYS:
        if scram_key in values:
            _parsed(values[scram_key], prefix + scram_key, "ScramLoginModule")
    mechanisms: dict[str, NewExchange] = {
        name: _scram(BY_LABEL[name], users) for name in names if name in BY_LABEL
    }
    if PLAIN in names:
        passwords = _passwords(values, prefix + JAAS_KEY)
        mechanisms[PLAIN] = lambda: PlainServerExchange(passwords)
    return {name: mechanisms[name] for name in names}


def _scram(mechanism: ScramMechanism, users: ScramUsers) -> NewExchange:
    return lambda: ScramServerExchange(
        mechanism, partial(users.find, mechanism), decoy=partial(users.decoy, mechanism)
    )


def _parsed(text: str, key: str, module: str) -> JaasEntry:
    """Return the entry of a login module. Errors quote no secret."""
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise ConfigError(key, HIDDEN, str(error)) from None
    if entry.module != module:
        raise ConfigError(key, HIDDEN, f"must name {module}")
    return entry


def _passwords(values: Mapping[str, str], key: str) -> Mapping[str, Secret]:
    """Return the passwords of PLAIN by user. Errors quote none of them."""
    entry = _parsed(values.get(JAAS_KEY, ""), key, "PlainLoginModule")
    passwords = {
        name.removeprefix(_USER_OPTION): Secret(value)
        for name, value in entry.options.items()
        if name.startswith(_USER_OPTION) and value
    }
    if not passwords:
        raise ConfigError(key, HIDDEN, 'needs users, as options user_NAME="PASSWORD"')
    return passwords
