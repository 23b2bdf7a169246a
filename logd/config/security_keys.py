"""The broker's security keys: which ones have an effect, and for which listener.

    listener.name.NAME.MECHANISM.sasl.jaas.config     the users of one mechanism, on one listener
    listener.name.NAME.KEY                            KEY for one listener
    KEY                                               KEY for all listeners

An unknown key is refused: a broker that ignored it would be open although its operator believes it closed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafka_client.errors import ConfigError

LISTENER_PREFIX = "listener.name."
JAAS_KEY = "plain.sasl.jaas.config"
SCRAM_JAAS_KEYS = ("scram-sha-256.sasl.jaas.config", "scram-sha-512.sasl.jaas.config")
"""Keys that Kafka's brokers need for SCRAM: the login module, and this broker's own user, none of clients."""
_SSL = """
    ssl.client.auth ssl.enabled.protocols ssl.protocol ssl.key.password ssl.keystore.location
    ssl.keystore.type ssl.keystore.password ssl.keystore.key ssl.keystore.certificate.chain
    ssl.truststore.location ssl.truststore.type ssl.truststore.password ssl.truststore.certificates
    ssl.principal.mapping.rules ssl.endpoint.identification.algorithm
"""
SECURITY_KEYS = frozenset((*_SSL.split(), "sasl.enabled.mechanisms"))


_RELOADED = re.compile(r"listener\.name\.[^.]+\.ssl\.(keystore|truststore)\.(location|type)")


def is_reloaded(key: str) -> bool:
    """Return True for a security setting that may change while the broker runs: the place of a store."""
    return _RELOADED.fullmatch(key.lower()) is not None


def check_security_key(key: str) -> None:
    """Raise ConfigError, without the value, for a key of TLS or SASL that has no effect."""
    plain = key
    allowed = SECURITY_KEYS
    if key.startswith(LISTENER_PREFIX):
        plain = key.removeprefix(LISTENER_PREFIX).partition(".")[2]
        allowed = SECURITY_KEYS | {JAAS_KEY, *SCRAM_JAAS_KEYS}
    if plain not in allowed:
        import difflib  # imported for unknown keys only: imports at start are limited

        near = difflib.get_close_matches(plain, allowed, 1, 0.8)
        raise ConfigError(key, "[hidden]", f"is not supported; {near[0]}?" if near else "is not supported")


def keys_of_listener(properties: Mapping[str, str], listener: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the security settings of a listener without its prefix, and the whole key of each one."""
    prefix = f"{LISTENER_PREFIX}{listener.lower()}."
    values: dict[str, str] = {}
    written: dict[str, str] = {}
    for key, value in properties.items():
        if key in SECURITY_KEYS:
            values.setdefault(key, value)
            written.setdefault(key, key)
        elif key.lower().startswith(prefix):
            plain = key[len(prefix) :]
            values[plain], written[plain] = value, key
    return values, written
