"""Whether a profile's keys make a client, and what of them is not shown."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client.profiles import SERVERS
from kafka_client.properties import CLIENT, ClientProperties
from kafka_client.security.keys import SECRETS
from kafka_client.security.secret import HIDDEN


def check(properties: Mapping[str, str]) -> None:
    """ConfigError for a value that no client can be made with; keys without effect are told."""
    given = ClientProperties.layered(properties, "")
    given.client()
    given.tell_rest((*CLIENT, SERVERS))


def without_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """The keys, with a word instead of each secret."""
    return {key: HIDDEN if _is_secret(key) else value for key, value in properties.items()}


def _is_secret(key: str) -> bool:
    """Secrets by Kafka's names, and whatever else calls itself one."""
    return key in SECRETS or any(word in key.lower() for word in ("password", "secret", "jaas"))
