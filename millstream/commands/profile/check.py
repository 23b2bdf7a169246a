"""Checking a profile's keys, and hiding its secrets."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client.profiles import SERVERS
from kafka_client.properties import CLIENT, ClientProperties
from kafka_client.security.keys import SECRETS
from kafka_client.security.secret import HIDDEN


def check(properties: Mapping[str, str]) -> None:
    """Raise ConfigError for a value that no client can be made with; warn about keys without effect."""
    client_properties = ClientProperties.layered(properties, "")
    client_properties.client()
    client_properties.tell_rest((*CLIENT, SERVERS))


def without_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with a placeholder for each secret."""
    return {key: HIDDEN if _is_secret(key) else value for key, value in properties.items()}


def _is_secret(key: str) -> bool:
    """Return True if Kafka lists the key as secret, or its name contains a word such as password."""
    return key in SECRETS or any(word in key.lower() for word in ("password", "secret", "jaas"))
