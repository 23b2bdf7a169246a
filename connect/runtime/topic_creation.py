"""Creates the topics of a source by the rules in its config (KIP-158).

    topic.creation.groups=tables                          rules, in order; `default` comes last by itself
    topic.creation.tables.include=airlines,.*-by-key      whole-name patterns; `exclude` takes precedence
    topic.creation.tables.cleanup.policy=compact          any topic config
    topic.creation.default.partitions=4                   -1: the broker's default
    topic.creation.default.replication.factor=1

If no rule matches, the broker's auto.create.topics.enable decides. As in Kafka Connect, a task waits for a
topic that nobody creates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connect.errors import ConfigError
from kafka_client import Admin, Client, NewTopic
from kafka_client.errors import ErrorCode, KafkaError, RetriableError

_PREFIX = "topic.creation."
_OWN = ("include", "exclude", "partitions", "replication.factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationRule:
    """A rule for creating the topics whose names match."""

    include: re.Pattern[str]
    exclude: re.Pattern[str] | None
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]

    def fits(self, topic: str) -> bool:
        """Return True if the topic's name matches this rule."""
        return self.include.fullmatch(topic) is not None and not (
            self.exclude and self.exclude.fullmatch(topic)
        )


def creation_prefixes(config: Mapping[str, Any]) -> list[str]:
    """Return the prefixes of the keys of a connector's rules."""
    return [f"{_PREFIX}{group}." for group in _groups(config)]


def _groups(config: Mapping[str, Any]) -> list[str]:
    """Return the names of the rules, in order."""
    named = [g.strip() for g in str(config.get("topic.creation.groups", "")).split(",") if g.strip()]
    return [*(g for g in named if g != "default"), "default"]


def creation_rules(config: Mapping[str, Any]) -> list[CreationRule]:
    """Return a connector's rules, in order.

    Raises ConfigError for a group without `include` or an invalid value.
    """
    groups = _groups(config)
    if len(set(groups)) < len(groups):
        raise ConfigError(
            "topic.creation.groups", config["topic.creation.groups"], "Duplicate alias provided."
        )
    if not any(key.startswith(_PREFIX + "default.") for key in config):
        if any(key.startswith(_PREFIX) for key in config):
            raise ConfigError(
                _PREFIX + "default.partitions",
                "",
                "topic.creation needs default.partitions and default.replication.factor",
            )
        return []
    return [_rule(group, config) for group in groups]


def _rule(group: str, config: Mapping[str, Any]) -> CreationRule:
    prefix = f"{_PREFIX}{group}."
    settings = {key[len(prefix) :]: str(value) for key, value in config.items() if key.startswith(prefix)}
    if group != "default" and "include" not in settings:
        raise ConfigError(prefix + "include", "", "is required: patterns of topic names")
    include = ".*" if group == "default" else settings["include"]
    fallback = {} if group == "default" else config
    return CreationRule(
        include=_pattern(prefix + "include", include),
        exclude=_pattern(prefix + "exclude", settings["exclude"]) if settings.get("exclude") else None,
        partitions=_count(prefix, "partitions", settings, fallback),
        replication_factor=_count(prefix, "replication.factor", settings, fallback),
        configs={key: value for key, value in settings.items() if key not in _OWN},
    )


def _pattern(key: str, patterns: str) -> re.Pattern[str]:
    try:
        return re.compile("|".join(f"(?:{p.strip()})" for p in patterns.split(",")))
    except re.error as e:
        raise ConfigError(key, patterns, f"is no regular expression: {e}") from e


def _count(prefix: str, name: str, settings: Mapping[str, str], fallback: Mapping[str, Any]) -> int:
    value = settings.get(name, fallback.get(f"{_PREFIX}default.{name}", "-1"))
    try:
        count = int(value)
    except ValueError:
        count = 0
    if count == 0 or count < -1:
        raise ConfigError(prefix + name, value, "must be -1 or a positive number")
    return count


class TopicCreation:
    """Lookup of partition counts that first creates a topic that does not exist."""

    def __init__(self, client: Client, admin: Admin, rules: list[CreationRule]) -> None:
        self._client = client
        self._admin = admin
        self._rules = rules
        self._ensured: set[str] = set()

    async def partition_count(self, topic: str) -> int:
        """Return the topic's number of partitions.

        Raises RetriableError if it does not exist and no rule creates it.
        """
        if topic not in self._ensured:
            await self._ensure(topic)
            self._ensured.add(topic)
        try:
            return len((await self._client.topic(topic)).partitions)
        except KafkaError as e:
            if e.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise RetriableError(
                    e.code,
                    f"topic {topic} does not exist: create it, or set topic.creation.default.partitions and "
                    "topic.creation.default.replication.factor on the connector",
                ) from e
            raise

    async def _ensure(self, topic: str) -> None:
        rule = next((r for r in self._rules if r.fits(topic)), None)
        if rule is None:
            return
        if topic not in await self._admin.list_topics():  # list all: a request for one topic could create it
            new = NewTopic(topic, rule.partitions, rule.replication_factor, dict(rule.configs))
            await self._admin.create_topics([new], exist_ok=True)
