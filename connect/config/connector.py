"""The settings every connector has, whatever its plugin; Kafka's own keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from connect.config.declaration import Config
from connect.config.setting import setting
from kafka_client.errors import ConfigError


def _at_least_one(value: int) -> None:
    if value < 1:
        raise ValueError("must be at least 1")


class ConnectorConfig(Config):
    """Settings of every connector."""

    name: str = setting(
        "The connector's name, one of its kind in the worker.", importance="HIGH", group="Common"
    )
    connector_class: str = setting(
        "The plugin: its name, `module:Class`, or Kafka's class name.",
        importance="HIGH",
        group="Common",
        kind="STRING",
    )
    tasks_max: int = setting("How many tasks at most.", default=1, group="Common", check=_at_least_one)
    key_converter: str | None = setting(
        "Converter of keys; the worker's if not set.", default=None, group="Common"
    )
    value_converter: str | None = setting(
        "Converter of values; the worker's if not set.", default=None, group="Common"
    )
    header_converter: str | None = setting(
        "Converter of headers; the worker's if not set.", default=None, group="Common"
    )


class SourceConfig(ConnectorConfig):
    """Settings of every source connector."""

    topic_creation_groups: list[str] = setting(
        "Names of rules by which topics are created (KIP-158); `default` comes last by itself.",
        default=[],
        importance="LOW",
        group="Topic creation",
    )


class SinkConfig(ConnectorConfig):
    """Settings of every sink connector."""

    topics: list[str] = setting("The topics to read.", default=[], importance="HIGH", group="Common")
    topics_regex: str | None = setting(
        "Instead of `topics`: every topic whose whole name matches.", default=None, group="Common"
    )
    errors_tolerance: Literal["none", "all"] = setting(
        "`all`: leave out records that do not convert and batches that cannot be read, and count them; "
        "`none`: fail.",
        default="none",
        group="Errors",
    )
    errors_log_enable: bool = setting(
        "Log what `errors.tolerance=all` leaves out, with its partition and offsets.",
        default=False,
        group="Errors",
    )
    errors_log_include_messages: bool = setting(
        "Log also key, value and headers of a record that does not convert.", default=False, group="Errors"
    )
    poll_interval_ms: int = setting(
        "How often a range sink is offered new offsets.", default=1000, importance="LOW", check=_at_least_one
    )

    @property
    def topics_pattern(self) -> re.Pattern[str] | None:
        """`topics.regex`, compiled."""
        return re.compile(self.topics_regex) if self.topics_regex else None

    def check(self) -> None:
        """Raise ConfigError unless exactly one of topics and topics.regex is set."""
        if bool(self.topics) == bool(self.topics_regex):
            raise ConfigError("topics", ",".join(self.topics), "set exactly one of topics and topics.regex")
        if self.topics_regex:
            try:
                re.compile(self.topics_regex)
            except re.error as e:
                raise ConfigError("topics.regex", self.topics_regex, f"is no regular expression: {e}") from e


_UNSUPPORTED: dict[str, tuple[str, ...]] = {
    "transforms": ("",),
    "predicates": ("",),
    "errors.tolerance": ("", "none"),
    "errors.deadletterqueue.topic.name": ("",),
    "exactly.once.support": ("", "requested"),
    "initial.state": ("", "running"),
}
"""Keys that change which records arrive, with the values that this worker supports."""


_IDLE = """
    errors.retry.timeout errors.retry.delay.max.ms
    errors.deadletterqueue.topic.replication.factor errors.deadletterqueue.context.headers.enable
    config.action.reload transaction.boundary transaction.boundary.interval.ms offsets.storage.topic
    tasks.max.enforce connector.plugin.version key.converter.plugin.version value.converter.plugin.version
    header.converter.plugin.version
"""
_OF_SINKS = frozenset(("errors.log.enable", "errors.log.include.messages"))
WITHOUT_EFFECT = frozenset(_IDLE.split())
"""Keys of Kafka Connect that are valid for every connector but have no effect here."""
REFUSED = frozenset(_UNSUPPORTED)
"""Keys of which `refuse_unsupported` accepts only values without effect."""


def without_effect(role: str) -> frozenset[str]:
    """Return the keys of Kafka Connect without effect on connectors of `role`, source or sink."""
    return WITHOUT_EFFECT | _OF_SINKS if role == "source" else WITHOUT_EFFECT


def refuse_unsupported(raw: Mapping[str, Any], role: str) -> None:
    """Raise ConfigError for a value this worker does not support, rather than ignore it."""
    for key, supported in _UNSUPPORTED.items():
        if role == "sink" and key == "errors.tolerance":
            continue
        if key in raw and str(raw[key]).lower() not in supported:
            allowed = " or ".join(filter(None, supported)) or "unset"
            raise ConfigError(key, raw[key], f"is not supported by this worker; allowed: {allowed}")
