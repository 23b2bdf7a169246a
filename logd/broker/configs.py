"""Settings as DescribeConfigs shows them, each with where it comes from, and changes to them.

A value comes from the strongest layer that has it: the topic's own override, this broker's changed settings,
the changed settings of all brokers, what the broker was started with, and last Kafka's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from logd.config.broker import BROKER_SETTINGS, BrokerConfig
from logd.config.setting import Kind, Setting, format_value
from logd.config.topic import TOPIC_SETTINGS
from logd.errors import ConfigError, ErrorCode, KafkaError

if TYPE_CHECKING:
    from logd.broker.broker import Broker

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


class Described(NamedTuple):
    """One setting of a resource; ``synonyms`` are its layers, strongest first."""

    key: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    synonyms: list[Synonym]
    kind: Kind
    documentation: str


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to a key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One operation on one key; the value is None for DELETE."""

    key: str
    operation: int
    value: str | None


# Describing


def described_topic_configs(broker: Broker, overrides: Mapping[str, str]) -> list[Described]:
    """Every setting of a topic that has these overrides, which must have been checked."""
    effective = broker.catalog.config_for(overrides)
    described = []
    for key, declared in TOPIC_SETTINGS.items():
        layers = [Synonym(key, overrides[key], Source.TOPIC)] if key in overrides else []
        for name in declared.broker_keys:
            layers += _broker_layers(broker, name)
        if not layers and len(declared.broker_keys) == 1:
            layers = [Synonym(declared.broker_keys[0], format_value(declared.default), Source.DEFAULT)]
        described.append(
            Described(
                key,
                format_value(getattr(effective, declared.field)),
                layers[0].source if layers else Source.DEFAULT,
                False,
                declared.sensitive,
                layers,
                declared.kind,
                declared.doc,
            )
        )
    return described


def described_broker_configs(broker: Broker) -> list[Described]:
    """Every setting of this broker."""
    described = []
    for key, declared in BROKER_SETTINGS.items():
        layers = _broker_layers(broker, key)
        if declared.default is not None or not layers:
            layers.append(Synonym(key, format_value(declared.default), Source.DEFAULT))
        described.append(_described_broker(declared, layers))
    return described


def described_cluster_configs(broker: Broker) -> list[Described]:
    """What has been changed for all brokers."""
    changed = broker.image.broker_configs.get(ALL_BROKERS, {})
    return [
        _described_broker(BROKER_SETTINGS[key], [Synonym(key, value, Source.ALL_BROKERS)])
        for key, value in changed.items()
    ]


def _described_broker(declared: Setting, layers: list[Synonym]) -> Described:
    if declared.sensitive:
        layers = [layer._replace(value=None) for layer in layers]
    return Described(
        declared.key,
        layers[0].value,
        layers[0].source,
        not declared.dynamic,
        declared.sensitive,
        layers,
        declared.kind,
        declared.doc,
    )


def _broker_layers(broker: Broker, key: str) -> list[Synonym]:
    changed = broker.image.broker_configs
    layers = (
        (changed.get(str(broker.node_id), {}), Source.THIS_BROKER),
        (changed.get(ALL_BROKERS, {}), Source.ALL_BROKERS),
        (broker.started_with, Source.STARTED_WITH),
    )
    return [Synonym(key, layer[key], source) for layer, source in layers if key in layer]


# Changing


def altered(
    current: Mapping[str, str],
    effective: Mapping[str, str | None],
    settings: Mapping[str, Setting],
    alterations: Iterable[Alteration],
) -> dict[str, str]:
    """``current`` overrides after the alterations; APPEND and SUBTRACT start from the ``effective`` values.

    KafkaError with INVALID_REQUEST or INVALID_CONFIG. Whether the result is allowed is left to the caller.
    """
    result = dict(current)
    seen: set[str] = set()
    for key, operation, value in alterations:
        if key in seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} stands in the request twice")
        seen.add(key)
        if operation == Operation.DELETE:
            result.pop(key, None)
            continue
        if value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{key} needs a value")
        if operation == Operation.SET:
            result[key] = value
        elif operation in (Operation.APPEND, Operation.SUBTRACT):
            result[key] = _listed(key, operation, value, result.get(key, effective.get(key)), settings)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key}: there is no operation {operation}")
    return result


def _listed(key: str, operation: int, value: str, before: str | None, settings: Mapping[str, Setting]) -> str:
    declared = settings.get(key)
    if declared is None or declared.kind is not Kind.LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{key} is not a list: it can be set or deleted, not appended to"
        )
    words = [word.strip() for word in (before or "").split(",") if word.strip()]
    changes = [word.strip() for word in value.split(",") if word.strip()]
    if operation == Operation.APPEND:
        words += [word for word in changes if word not in words]
    else:
        words = [word for word in words if word not in changes]
    return ",".join(words)


def check_dynamic(configs: Mapping[str, str]) -> None:
    """Raise KafkaError(INVALID_REQUEST) unless all keys are broker settings that can change while running."""
    for key in configs:
        declared = BROKER_SETTINGS.get(key)
        if declared is None or not declared.dynamic:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{key} cannot be changed while the broker runs; set it before the start",
            )


def with_changes(
    started_with: Mapping[str, str], changed: Mapping[str, Mapping[str, str]], node_id: int
) -> BrokerConfig:
    """The broker's effective settings; KafkaError(INVALID_CONFIG)."""
    layers = {**started_with, **changed.get(ALL_BROKERS, {}), **changed.get(str(node_id), {})}
    try:
        return BrokerConfig.of(layers)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
