"""Which topics are copied, and which of their configs: MirrorMaker 2's filters, with its defaults."""

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
    """Names that match one of `include` and none of `exclude`, whole."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def takes(self, name: str) -> bool:
        """Whether the name is wanted."""
        return any(p.fullmatch(name) for p in self.include) and not any(
            p.fullmatch(name) for p in self.exclude
        )


def patterns(key: str, text: str) -> tuple[re.Pattern[str], ...]:
    """A comma-separated list of regular expressions; ConfigError names the bad one."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(re.compile(part))
        except re.error as e:
            raise ConfigError(key, part, f"a regular expression; this one has {e}") from None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """The topics of one flow. A topic that came from the target, by whatever way, is not sent back."""

    names: NameFilter
    policy: ReplicationPolicy
    target: str

    def takes(self, topic: str) -> bool:
        """Whether `topic` of the source is copied."""
        return self.names.takes(topic) and self.target not in self.policy.upstream_clusters(topic)

    def choose(self, topics: Iterable[str]) -> list[str]:
        """Those of `topics` that are copied, sorted."""
        return sorted(filter(self.takes, topics))


def copied_configs(
    entries: Mapping[str, ConfigEntry], exclude: tuple[re.Pattern[str], ...]
) -> dict[str, str]:
    """The values set on a source topic itself that its remote topic gets too."""
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
