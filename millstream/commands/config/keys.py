"""Settings' keys: those that are known, and the one that may be meant by a wrong one."""

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
    """The keys of topics that logd knows, which are Apache Kafka's."""
    from logd.config import TOPIC_SETTINGS

    return TOPIC_SETTINGS


def read_settings(texts: Sequence[str], what: str) -> dict[str, str]:
    """`key=value` arguments; UsageError for one that is not."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{what} {text}: give KEY=VALUE")
        found[key.strip()] = value.strip()
    return found


def own_settings(configs: Mapping[str, ConfigEntry] | KafkaError | None) -> dict[str, str | None]:
    """The values that a topic has itself, none of the broker's; nothing where they are not to be had."""
    if configs is None or isinstance(configs, KafkaError):
        return {}
    return {key: entry.value for key, entry in sorted(configs.items()) if entry.source == 1}


def with_nearest(error: KafkaError, keys: Iterable[str], known: Iterable[str]) -> KafkaError:
    """A broker's refusal, with the nearest key for each that is not known."""
    there = list(known)
    unknown = [key for key in keys if key not in there]
    meant = {key: near for key in unknown if (near := nearest(key, there)) and near not in error.message}
    hints = [f"{key} is not known; {near}?" for key, near in meant.items()]
    return KafkaError(error.code, ". ".join([error.message.rstrip("."), *hints])) if hints else error
