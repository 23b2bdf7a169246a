"""Kafka's security keys, and a reader of them that keeps secrets out of errors."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping

from kafka_client.errors import ConfigError
from kafka_client.security.secret import HIDDEN, Secret

_log = logging.getLogger(__name__)

_SECRETS = """
    ssl.truststore.password ssl.truststore.certificates ssl.keystore.password ssl.keystore.key
    ssl.keystore.certificate.chain ssl.key.password sasl.jaas.config sasl.password
    sasl.oauthbearer.client.secret sasl.oauthbearer.client.credentials.client.secret
"""
SECRETS = frozenset(_SECRETS.split())
"""Keys whose values are never shown."""

_SHOWN = """
    security.protocol ssl.truststore.location ssl.truststore.type ssl.keystore.location ssl.keystore.type
    ssl.endpoint.identification.algorithm ssl.enabled.protocols ssl.protocol sasl.mechanism sasl.mechanisms
    sasl.username sasl.login.callback.handler.class sasl.oauthbearer.token.endpoint.url
    sasl.oauthbearer.scope sasl.oauthbearer.client.id sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.header.urlencode
"""
SECURITY_KEYS = SECRETS | frozenset(_SHOWN.split())
"""Keys with an effect here: those of Java's clients, and librdkafka's short SASL keys."""

_IDLE = """
    security.providers ssl.provider ssl.keymanager.algorithm ssl.trustmanager.algorithm
    ssl.secure.random.implementation sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.retry.backoff.ms
    sasl.login.retry.backoff.max.ms sasl.kerberos.service.name sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.method sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
"""
WITHOUT_EFFECT = frozenset(_IDLE.split())
"""Keys of Java's clients and librdkafka without effect here; ignoring them weakens nothing."""

PREFIXES = ("security.", "ssl.", "sasl.")


def is_security_key(key: str) -> bool:
    """Return True for keys of `SecuritySettings.from_properties`, known or misspelt."""
    return key.startswith(PREFIXES)


class SecurityKeys:
    """The security keys in `properties`.

    Errors and logs name a key as in `written`, or with `prefix`.
    """

    def __init__(
        self, properties: Mapping[str, object], prefix: str = "", written: Mapping[str, str] | None = None
    ) -> None:
        # str.__str__: a password type derived from str may hide itself from str().
        self._values = {
            key: str.__str__(value).strip() if isinstance(value, str) else str(value)
            for key, value in properties.items()
            if is_security_key(key) and value is not None
        }
        self._prefix = prefix
        self._written = written or {}

    def check_names(self) -> None:
        """Raise ConfigError for an unknown key: ignoring it would weaken what it was meant to strengthen.

        Keys without effect are named in one line of the log.
        """
        for key in self._values:
            if key in SECURITY_KEYS or key in WITHOUT_EFFECT:
                continue
            near = difflib.get_close_matches(key, SECURITY_KEYS, 1, 0.8)
            raise ConfigError(
                self._name(key), HIDDEN, f"is not supported; {near[0]}?" if near else "is not supported"
            )
        if idle := sorted(self._name(key) for key in self._values.keys() & WITHOUT_EFFECT):
            _log.warning("without effect here: %s", ", ".join(idle))

    def has(self, key: str) -> bool:
        """Return True if the key is set and not empty."""
        return bool(self._values.get(key))

    def text(self, key: str, default: str = "") -> str:
        """Return the value of `key`, or `default` if the key is not set."""
        return self._values.get(key, default)

    def secret(self, key: str) -> Secret | None:
        """Return the value, hidden; None if it is not set or empty."""
        return Secret(self._values[key]) if self.has(key) else None

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """Return the value, which must be one of `choices` in any case; raises ConfigError."""
        value = self.text(key) or default
        if value.upper() not in (choice.upper() for choice in choices):
            raise self.wrong(key, "one of " + ", ".join(choices))
        return next(choice for choice in choices if choice.upper() == value.upper())

    def wrong(self, key: str, allowed: str) -> ConfigError:
        """Return the error for a key's value, which is shown unless it is a secret."""
        shown = HIDDEN if key in SECRETS and self.has(key) else self.text(key)
        return ConfigError(self._name(key), shown, allowed)

    def _name(self, key: str) -> str:
        return self._written.get(key, self._prefix + key)
