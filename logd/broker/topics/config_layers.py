"""The broker's settings as layers: what it was started with, and what was changed since.

A value comes from the strongest layer that has it: this broker's changed settings, those of all brokers, what
the broker was started with, and last Kafka's default.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from kafka_client.errors import ConfigError, ErrorCode, KafkaError
from logd.config.broker import BROKER_SETTINGS, BrokerConfig
from logd.config.inert import INERT_SETTINGS
from logd.config.setting import format_value

log = logging.getLogger("logd.broker")

ALL_BROKERS = ""
"""The name under which settings of all brokers are changed."""


class Source(IntEnum):
    """Where a value comes from, numbered as in DescribeConfigs."""

    TOPIC = 1
    THIS_BROKER = 2
    ALL_BROKERS = 3
    STARTED_WITH = 4
    DEFAULT = 5


class Synonym(NamedTuple):
    """A layer's value for a setting, under the name it has in that layer."""

    name: str
    value: str | None
    source: Source


class ConfigLayers(NamedTuple):
    """Settings as text, by key. ``changed`` is by broker: a node id, or ``ALL_BROKERS``."""

    node_id: int
    started_with: Mapping[str, str]
    changed: Mapping[str, Mapping[str, str]]

    def synonyms(self, key: str) -> list[Synonym]:
        """Return the layers' values of one key, strongest first, without Kafka's default."""
        layers = (
            (self._of(str(self.node_id)), Source.THIS_BROKER),
            (self._of(ALL_BROKERS), Source.ALL_BROKERS),
            (self.started_with, Source.STARTED_WITH),
        )
        return [Synonym(key, layer[key], source) for layer, source in layers if key in layer]

    def with_change(self, broker: str, configs: Mapping[str, str]) -> ConfigLayers:
        """Return the layers with ``configs`` as the changed settings of ``broker``."""
        return self._replace(changed={**self.changed, broker: configs})

    def values(self, broker: str) -> dict[str, str | None]:
        """Return the effective settings of ``broker`` (or of all brokers), as text by key, with Kafka's
        defaults.
        """
        declared = {**BROKER_SETTINGS, **INERT_SETTINGS}
        defaults = {key: format_value(setting.default) for key, setting in declared.items()}
        own = self._of(broker) if broker != ALL_BROKERS else {}
        return {**defaults, **self.started_with, **self._of(ALL_BROKERS), **own}

    def allowed(self) -> ConfigLayers:
        """Return the layers without changed values that are not allowed, as Kafka does: another version may
        have taken them. A broker says so, and goes by the value of the next layer.
        """
        layers = {broker: self._of(broker) for broker in (ALL_BROKERS, str(self.node_id))}
        valid = {
            broker: {key: value for key, value in configs.items() if _is_allowed(key, value)}
            for broker, configs in layers.items()
        }
        return self._replace(changed={**self.changed, **valid})

    def effective(self) -> BrokerConfig:
        """Return the settings in effect. Raises KafkaError(INVALID_REQUEST), as Kafka does."""
        try:
            return BrokerConfig.of(
                {**self.started_with, **self._of(ALL_BROKERS), **self._of(str(self.node_id))}
            )
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None

    def _of(self, broker: str) -> Mapping[str, str]:
        return self.changed.get(broker, {})


def _is_allowed(key: str, value: str) -> bool:
    declared = BROKER_SETTINGS.get(key)
    if declared is None:
        return True
    try:
        declared.parse(value)
    except ConfigError as error:
        log.error("a setting that was changed while running is left out: %s", error)
        return False
    return True
