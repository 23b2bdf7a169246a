"""The account by which the brokers of a cluster log in to each other, and its settings.

    listener.name.NAME.MECHANISM.sasl.jaas.config     username and password of this broker

The settings count on a listener with SASL, with `sasl.mechanism.inter.broker.protocol`. Otherwise the account
has a secret that the cluster keeps in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from kafka_client.errors import ConfigError
from kafka_client.security.jaas import JaasEntry, JaasError, parse_jaas
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.secret import HIDDEN, Secret
from kafka_client.security.tls import TlsSettings, parse_tls
from logd.config.security_keys import LISTENER_PREFIX, keys_of_listener
from logd.security.scram_credential import BY_LABEL, ScramCredential

DEFAULT_MECHANISM: Final = "SCRAM-SHA-256"
MODULES: Final[Mapping[str, str]] = {
    "PLAIN": "PlainLoginModule",
    **dict.fromkeys(BY_LABEL, "ScramLoginModule"),
}
"""The login modules of mechanisms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAccount:
    """The account of the brokers: a mechanism, a user and a password."""

    mechanism: str
    user: str
    password: Secret


class AccountOfBrokers(Protocol):
    """The brokers' account, once it is known."""

    @property
    def account(self) -> BrokerAccount:
        """The account of this broker."""
        ...

    @property
    def credential(self) -> ScramCredential:
        """The credential of the account, if its mechanism is SCRAM."""
        ...


def configured_account(
    properties: Mapping[str, str], listener: str, protocol: str, mechanism: str | None
) -> BrokerAccount | None:
    """Return the account in the settings, or None for the secret in ZooKeeper. Raises ConfigError.

    `mechanism` is the value of `sasl.mechanism.inter.broker.protocol`.
    """
    if mechanism is None or not protocol.startswith("SASL_"):
        return None
    values, _ = keys_of_listener(properties, listener)
    name = f"{mechanism.lower()}.sasl.jaas.config"
    key = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
    options = parsed_jaas(values[name], key, MODULES[mechanism]).options if values.get(name) else {}
    user, password = options.get("username", ""), options.get("password", "")
    if user and password:
        return BrokerAccount(mechanism=mechanism, user=user, password=Secret(password))
    if mechanism == DEFAULT_MECHANISM and not user:
        return None
    raise ConfigError(
        key,
        HIDDEN if name in values else "",
        f"needs username and password of this broker, for sasl.mechanism.inter.broker.protocol={mechanism}",
    )


def tls_between_brokers(properties: Mapping[str, str], listener: str) -> TlsSettings:
    """Return the TLS settings by which this broker connects to others' listener. Raises ConfigError."""
    values, written = keys_of_listener(properties, listener)
    return parse_tls(
        SecurityKeys({key: value for key, value in values.items() if key.startswith("ssl.")}, "", written)
    )


def parsed_jaas(text: str, key: str, module: str) -> JaasEntry:
    """Return the entry of a login module. Raises ConfigError, which quotes no secret."""
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise ConfigError(key, HIDDEN, str(error)) from None
    if entry.module != module:
        raise ConfigError(key, HIDDEN, f"must name {module}")
    return entry
