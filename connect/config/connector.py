"""The settings every connector has, whatever its plugin; Kafka's own keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from connect.config.checks import at_least, distinct, no_control_characters, one_of
from connect.config.declaration import Config
from connect.config.errors import ErrorsConfig
from connect.config.placement import PlacementConfig
from connect.config.rate_limit import RateLimitConfig
from connect.config.setting import setting
from connect.config.sink_topics import topics_errors
from connect.errors import InvalidConfig
from kafka_client.errors import ConfigError


def _named(value: str) -> None:
    if not value.strip():
        raise ValueError("must not be empty")


class ConnectorConfig(Config):
    """Settings of every connector."""

    name: str = setting(
        "The connector's name, one of its kind in the worker.",
        importance="HIGH",
        group="Common",
        check=no_control_characters,
    )
    connector_class: str = setting(
        "The plugin: its name, `module:Class`, or Kafka's class name.",
        importance="HIGH",
        group="Common",
        kind="STRING",
    )
    connector_plugin_version: str | None = setting(
        "The version of the plugin, `latest`, or a range such as `[1.0,2.0)` (KIP-891); without it, the one "
        "that is installed, or else the newest in `plugin.path`.",
        default=None,
        importance="MEDIUM",
        group="Common",
    )
    tasks_max: int = setting("How many tasks at most.", default=1, group="Common", check=at_least(1))
    tasks_max_enforce: bool = setting(
        "Whether a connector that plans more than `tasks.max` tasks fails, with its tasks (KIP-1004).",
        default=True,
        importance="LOW",
        group="Common",
    )
    task_isolation: Literal["thread", "process"] | None = setting(
        "Where tasks run: `thread`, in the worker's process, or `process`, each in a process of its own; the "
        "worker's `task.isolation` if not set.",
        default=None,
        importance="LOW",
        group="Common",
    )
    key_converter: str | None = setting(
        "Converter of keys; the worker's if not set.", default=None, group="Common"
    )
    value_converter: str | None = setting(
        "Converter of values; the worker's if not set.", default=None, group="Common"
    )
    header_converter: str | None = setting(
        "Converter of headers; the worker's if not set.", default=None, group="Common"
    )
    config_action_reload: str = setting(
        "What the worker does when a value of a config provider expires: `restart` what uses the value, or "
        "`none` (KIP-297).",
        default="restart",
        importance="LOW",
        group="Common",
        check=one_of("none", "restart"),
    )


class SourceConfig(PlacementConfig, RateLimitConfig, ErrorsConfig, ConnectorConfig):
    """Settings of every source connector."""

    topic_creation_groups: list[str] = setting(
        "Names of rules by which topics are created (KIP-158); `default` comes last by itself.",
        default=[],
        importance="LOW",
        group="Topic creation",
        check=distinct,
    )
    exactly_once_support: str = setting(
        "`required` refuses the connector unless it can be exactly-once on this worker (KIP-618).",
        default="requested",
        group="Exactly Once Support",
        check=one_of("requested", "required"),
    )
    transaction_boundary: str = setting(
        "Where exactly-once tasks end transactions: at each `poll`, at an `interval`, or where the "
        "`connector` says.",
        default="poll",
        group="Exactly Once Support",
        check=one_of("poll", "interval", "connector"),
    )
    transaction_boundary_interval_ms: int | None = setting(
        "How often they end with transaction.boundary=interval; the worker's offset.flush.interval.ms if "
        "not set.",
        default=None,
        kind="LONG",
        importance="LOW",
        group="Exactly Once Support",
        check=at_least(0),
    )
    offsets_storage_topic: str | None = setting(
        "A topic of its own for the connector's source offsets, in a group of workers.",
        default=None,
        importance="LOW",
        group="offsets.topic",
        check=_named,
    )


class SinkConfig(PlacementConfig, RateLimitConfig, ErrorsConfig, ConnectorConfig):
    """Settings of every sink connector."""

    topics: list[str] = setting("The topics to read.", default=[], importance="HIGH", group="Common")
    topics_regex: str | None = setting(
        "Instead of `topics`: every topic whose whole name matches.", default=None, group="Common"
    )
    put_max_bytes: int = setting(
        "About how many bytes of keys and values one `put` gets at most; a single record may have more.",
        default=16 << 20,
        importance="LOW",
        check=at_least(1),
    )
    poll_interval_ms: int = setting(
        "How often a range sink is offered new offsets.", default=1000, importance="LOW", check=at_least(1)
    )

    @property
    def topics_pattern(self) -> re.Pattern[str] | None:
        """`topics.regex`, compiled."""
        return re.compile(self.topics_regex) if self.topics_regex else None

    def check(self) -> None:
        """Raise ConfigError unless one of topics and topics.regex is set, without the dead letters."""
        errors = topics_errors(self.topics, self.topics_regex, self.dead_letter_topic)
        if errors:
            raise InvalidConfig(errors) if len(errors) > 1 else errors[0]


_UNSUPPORTED: dict[str, tuple[str, ...]] = {
    "initial.state": ("", "running"),
}
"""Keys that change which records arrive, with the values that this worker supports."""


REFUSED = frozenset(_UNSUPPORTED)
"""Keys of which `refuse_unsupported` accepts only values without effect."""


def refuse_unsupported(raw: Mapping[str, Any]) -> None:
    """Raise ConfigError for a value this worker does not support, rather than ignore it."""
    for key, supported in _UNSUPPORTED.items():
        if key in raw and str(raw[key]).lower() not in supported:
            allowed = " or ".join(filter(None, supported)) or "unset"
            raise ConfigError(key, raw[key], f"is not supported by this worker; allowed: {allowed}")
