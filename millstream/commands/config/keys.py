"""Settings' keys: the known ones, and the nearest known key to a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafka_client import ConfigEntry
from kafka_client.errors import KafkaError
from kafka_client.properties import nearest
from millstream.terminal.status import UsageError

SOURCES = {
    1: "topic",
    2: "broker, dynamic",
    3: "all brokers, dynamic",
    4: "broker, static",
    5: "default",
    6: "logger, dynamic",
    7: "client metrics",
    8: "group",
}
"""DescribeConfigs' sources, by number."""


def known_topic_keys() -> Iterable[str]:
    """Return the topic keys that logd knows, which are Apache Kafka's."""
    from logd.config import TOPIC_SETTINGS

    return TOPIC_SETTINGS


def read_settings(texts: Sequence[str], what: str) -> dict[str, str]:
    """Return `key=value` arguments as a dict. Raises UsageError if an argument has no key or no `=`."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{what} {text}: give KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def own_settings(configs: Mapping[str, ConfigEntry] | KafkaError | None) -> dict[str, str | None]:
    """Return the values set on the topic, without the broker's and the defaults. Empty after an error."""
    if configs is None or isinstance(configs, KafkaError):
        return {}
    return {key: entry.value for key, entry in sorted(configs.items()) if entry.source == 1}


def with_nearest(error: KafkaError, keys: Iterable[str], known_keys: Iterable[str]) -> KafkaError:
    """Return the broker's error with the nearest known key added for each unknown one."""
    existing = list(known_keys)
    unknown = [key for key in keys if key not in existing]
    meant = {key: near for key in unknown if (near := nearest(key, existing)) and near not in error.message}
    hints = [f"{key} is not known; {near}?" for key, near in meant.items()]
    return KafkaError(error.code, ". ".join([error.message.rstrip("."), *hints])) if hints else error
