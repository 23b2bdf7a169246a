"""Filters of the topics and of the topic configs to copy, with MirrorMaker 2's defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_client import ConfigEntry
from kafka_client.errors import ConfigError
from mirror.cycles import is_cycle
from mirror.policy import ReplicationPolicy

TOPICS_EXCLUDE = r".*[\-\.]internal, .*\.replica, __.*"
CONFIG_PROPERTIES_EXCLUDE = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.before\.max\.ms, "
    r"message\.timestamp\.after\.max\.ms, message\.timestamp\.type, "
    r"unclean\.leader\.election\.enable, min\.insync\.replicas"
)

_OF_MIRRORMAKER = re.compile(r"mm2-.*[.\-]internal")
"""Topics of MirrorMaker, whichever separator its policy has now: offset syncs, configs, offsets, statuses."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFilter:
    """Filter of one flow's topics. Internal topics and copies of the target's topics never pass."""

    names: NameFilter
    policy: ReplicationPolicy
    source: str
    """Alias of the source."""
    target: str
    """Alias of the target."""
    heartbeats: bool = True
    """True to copy topics of heartbeats, whatever `names` says (`heartbeats.replication.enabled`)."""

    def takes(self, topic: str) -> bool:
        """Return True if the source's `topic` is copied."""
        is_chosen = self.names.takes(topic) or (self.heartbeats and self.policy.is_heartbeats_topic(topic))
        return (
            is_chosen
            and not self.is_internal(topic)
            and not is_cycle(self.policy, topic, source=self.source, target=self.target)
        )

    def choose(self, topics: Iterable[str]) -> list[str]:
        """Return the names in `topics` that are copied, sorted."""
        return sorted(filter(self.takes, topics))

    def is_internal(self, topic: str) -> bool:
        """Return True for topics that no filter can choose.

        Those are the policy's internal topics, copies of MirrorMaker's own topics, and topics of MirrorMaker
        that were named by another separator.
        """
        policy = self.policy
        if policy.is_internal_topic(topic) or _OF_MIRRORMAKER.fullmatch(topic):
            return True
        upstream = policy.upstream_topic(topic)
        return upstream is not None and upstream != topic and self._is_of_mirrormaker(upstream)

    def _is_of_mirrormaker(self, topic: str) -> bool:
        upstream = self.policy.upstream_topic(topic)
        return (
            _OF_MIRRORMAKER.fullmatch(topic) is not None
            or self.policy.is_mirror_internal_topic(topic)
            or (upstream is not None and len(upstream) < len(topic) and self._is_of_mirrormaker(upstream))
        )


def copied_configs(
    entries: Mapping[str, ConfigEntry], exclude: tuple[re.Pattern[str], ...], *, source_defaults: bool = False
) -> dict[str, str]:
    """Return the configs to copy: values set on the source topic itself, not sensitive and not excluded.

    With `source_defaults`, return the values that the source's brokers have for the others, too (KIP-894).
    """
    return {
        key: entry.value
        for key, entry in entries.items()
        if (entry.source == _TOPIC_SOURCE or (source_defaults and not entry.read_only))
        and entry.value is not None
        and not entry.sensitive
        and not _any(exclude, key)
    }


def config_changes(
    copied: Mapping[str, str], current: Mapping[str, ConfigEntry], exclude: tuple[re.Pattern[str], ...]
) -> dict[str, str | None]:
    """Return the changes that give a remote topic the configs `copied`; None resets a config to its default.

    A config that is set on the remote topic and not on the source topic is reset (KIP-894), except if it is
    excluded: the operator may set those on the remote topic.
    """
    changes: dict[str, str | None] = {
        key: value
        for key, value in copied.items()
        if key not in current or current[key].value != value or current[key].source != _TOPIC_SOURCE
    }
    removed = (
        key
        for key, entry in current.items()
        if entry.source == _TOPIC_SOURCE and key not in copied and not _any(exclude, key)
    )
    return changes | dict.fromkeys(removed)


def _any(patterns: tuple[re.Pattern[str], ...], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
