"""The security of one listener: its TLS context and its logins, by Kafka's keys.

Passwords of PLAIN are in `listener.name.NAME.plain.sasl.jaas.config`, as options `user_NAME="PASSWORD"`.
Credentials of SCRAM are in the cluster's metadata.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kafka_client.errors import ConfigError
from kafka_client.security.context import make_server_context
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.secret import HIDDEN, Secret
from kafka_client.security.tls import parse_tls
from logd.config.security_keys import JAAS_KEY, LISTENER_PREFIX, SCRAM_JAAS_KEYS, keys_of_listener
from logd.security.broker_account import (
    DEFAULT_MECHANISM,
    AccountOfBrokers,
    BrokerAccount,
    configured_account,
    parsed_jaas,
)
from logd.security.login import NewExchange
from logd.security.plain import PlainServerExchange
from logd.security.principal_rules import KEY as PRINCIPAL_RULES
from logd.security.principal_rules import PrincipalRules
from logd.security.scram import FindCredential, ScramServerExchange
from logd.security.scram_credential import BY_LABEL, ScramCredential, ScramMechanism
from logd.security.scram_users import ScramUsers

PLAIN = "PLAIN"
MECHANISMS = (PLAIN, *BY_LABEL)
"""The mechanisms that a listener can enable."""
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
STORES = ("ssl.keystore", "ssl.truststore")
_USER_OPTION = "user_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """The TLS and the logins that a listener asks of its peers."""

    tls: ssl.SSLContext | None = None
    """The TLS context; None on a listener without TLS."""
    mechanisms: Mapping[str, NewExchange] = field(default_factory=dict)
    """The enabled SASL mechanisms by name; empty on a listener without SASL."""
    principal_rules: PrincipalRules | None = None
    """The rules for names in certificates; None if the listener takes no principals from certificates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenBrokers:
    """The facts that a listener needs if brokers talk to each other by it."""

    mechanism: str | None
    """The value of sasl.mechanism.inter.broker.protocol."""
    account: Callable[[], AccountOfBrokers | None]
    """Returns the account of the brokers, or None while this broker has not opened its membership."""


def listener_security(
    properties: Mapping[str, str],
    listener: str,
    protocol: str,
    users: ScramUsers,
    between: BetweenBrokers | None = None,
) -> ListenerSecurity | None:
    """Return the security of a listener, None for PLAINTEXT. Reads key stores. Raises ConfigError.

    `users` log in by SCRAM. `between` is given for the listener of brokers.
    """
    if protocol == "PLAINTEXT":
        return None
    values, written = keys_of_listener(properties, listener)
    mechanisms: Mapping[str, NewExchange] = {}
    if protocol.startswith("SASL_"):
        enabled = _enabled(values, written)
        own = None
        if between is not None:
            own = configured_account(properties, listener, protocol, between.mechanism)
            if own is not None and own.mechanism not in enabled:
                raise ConfigError(
                    "sasl.mechanism.inter.broker.protocol",
                    own.mechanism,
                    f"one of sasl.enabled.mechanisms of listener {listener}: " + ", ".join(enabled),
                )
        mechanisms = _mechanisms(values, listener, enabled, users, own)
        if between is not None:
            mechanisms = _with_brokers(mechanisms, between, users, own)
    rules = values.get(PRINCIPAL_RULES, "DEFAULT")
    return ListenerSecurity(
        tls=server_context(properties, listener) if protocol in ("SSL", "SASL_SSL") else None,
        mechanisms=mechanisms,
        principal_rules=PrincipalRules(rules, written.get(PRINCIPAL_RULES, PRINCIPAL_RULES))
        if protocol == "SSL"
        else None,
    )


def tls_values(properties: Mapping[str, str], listener: str) -> Mapping[str, str]:
    """Return the `ssl.*` settings of a listener, by key."""
    values, _ = keys_of_listener(properties, listener)
    return {key: value for key, value in values.items() if key.startswith("ssl.")}


def server_context(properties: Mapping[str, str], listener: str) -> ssl.SSLContext:
    """Return the TLS context of a listener. Reads key stores. Raises ConfigError."""
    _, written = keys_of_listener(properties, listener)
    keys = SecurityKeys(tls_values(properties, listener), "", written)
    client_auth = keys.choice("ssl.client.auth", tuple(_CLIENT_AUTH), "none")
    return make_server_context(parse_tls(keys), _CLIENT_AUTH[client_auth])


def _enabled(values: Mapping[str, str], written: Mapping[str, str]) -> list[str]:
    key = "sasl.enabled.mechanisms"
    names = [name.strip() for name in values.get(key, "").split(",") if name.strip()]
    if not names or any(name not in MECHANISMS for name in names):
        raise ConfigError(written.get(key, key), values.get(key, ""), "one of " + ", ".join(MECHANISMS))
    return names


def _mechanisms(
    values: Mapping[str, str],
    listener: str,
    enabled: Sequence[str],
    users: ScramUsers,
    own: BrokerAccount | None,
) -> Mapping[str, NewExchange]:
    prefix = f"{LISTENER_PREFIX}{listener.lower()}."
    for scram_key in SCRAM_JAAS_KEYS:
        if scram_key in values:
            parsed_jaas(values[scram_key], prefix + scram_key, "ScramLoginModule")
    mechanisms: dict[str, NewExchange] = {
        name: _scram(BY_LABEL[name], partial(users.find, BY_LABEL[name]), users)
        for name in enabled
        if name in BY_LABEL
    }
    if PLAIN in enabled:
        passwords = _passwords(values, prefix + JAAS_KEY, own)
        mechanisms[PLAIN] = lambda: PlainServerExchange(passwords)
    return {name: mechanisms[name] for name in enabled}


def _scram(mechanism: ScramMechanism, find: FindCredential, users: ScramUsers) -> NewExchange:
    return lambda: ScramServerExchange(mechanism, find, decoy=partial(users.decoy, mechanism))


def _with_brokers(
    mechanisms: Mapping[str, NewExchange],
    between: BetweenBrokers,
    users: ScramUsers,
    own: BrokerAccount | None,
) -> Mapping[str, NewExchange]:
    """Return the mechanisms of the listener between brokers, with the account of the brokers."""
    name = DEFAULT_MECHANISM if own is None else own.mechanism
    if name == PLAIN:  # the password is among those of the listener
        return mechanisms
    mechanism, serves_others = BY_LABEL[name], name in mechanisms

    def find(user: str) -> ScramCredential | None:
        brokers = between.account()
        if brokers is not None and user == brokers.account.user:
            return brokers.credential
        others = users.find(mechanism, user)
        return others if serves_others else None

    return {**mechanisms, name: _scram(mechanism, find, users)}


def _passwords(values: Mapping[str, str], key: str, own: BrokerAccount | None) -> Mapping[str, Secret]:
    """Return the passwords of PLAIN by user, with that of this broker. Errors quote none of them."""
    entry = parsed_jaas(values.get(JAAS_KEY, ""), key, "PlainLoginModule")
    passwords = {
        name.removeprefix(_USER_OPTION): Secret(value)
        for name, value in entry.options.items()
        if name.startswith(_USER_OPTION) and value
    }
    if own is not None and own.mechanism == PLAIN:
        passwords.setdefault(own.user, own.password)
    if not passwords:
        raise ConfigError(key, HIDDEN, 'needs users, as options user_NAME="PASSWORD"')
    return passwords
