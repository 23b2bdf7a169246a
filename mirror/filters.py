"""Filters of the topics and of the topic configs to copy, with MirrorMaker 2's defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_client import ConfigEntry
from kafka_client.errors import ConfigError
from mirror.policy import ReplicationPolicy

TOPICS_EXCLUDE = r".*[\-\.]internal, .*\.replica, __.*"
CONFIG_PROPERTIES_EXCLUDE = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.before\.max\.ms, "
    r"message\.timestamp\.after\.max\.ms, message\.timestamp\.type, "
    r"unclean\.leader\.election\.enable, min\.insync\.replicas"
)

_TOPIC_SOURCE = 1
"""ConfigSource of a value set on the topic itself (DescribeConfigs)."""


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Filter of names: the whole name matches a pattern of `include` and none of `exclude`."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def takes(self, name: str) -> bool:
        """Return True if the name passes the filter."""
        return any(p.fullmatch(name) for p in self.include) and not any(
            p.fullmatch(name) for p in self.exclude
        )


def patterns(key: str, text: str) -> tuple[re.Pattern[str], ...]:
    """Parse a comma-separated list of regular expressions.

    Raises ConfigError, with the invalid expression, for the setting `key`.
    """
    compiled = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            compiled.append(re.compile(part))
        except re.error as e:
            raise ConfigError(key, part, f"a regular expression; this one has {e}") from None
    return tuple(compiled)


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """Filter of one flow's topics. Topics that were copied from the target, directly or not, do not pass."""

    names: NameFilter
    policy: ReplicationPolicy
    target: str

    def takes(self, topic: str) -> bool:
        """Return True if the source's `topic` is copied."""
        return self.names.takes(topic) and self.target not in self.policy.upstream_clusters(topic)

    def choose(self, topics: Iterable[str]) -> list[str]:
        """Return the names in `topics` that are copied, sorted."""
        return sorted(filter(self.takes, topics))


def copied_configs(
    entries: Mapping[str, ConfigEntry], exclude: tuple[re.Pattern[str], ...]
) -> dict[str, str]:
    """Return the configs to copy: values set on the source topic itself, not sensitive and not excluded."""
    return {
        key: entry.value
        for key, entry in entries.items()
        if entry.source == _TOPIC_SOURCE
        and entry.value is not None
        and not entry.sensitive
        and not _any(exclude, key)
    }


def _any(patterns: tuple[re.Pattern[str], ...], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
