"""Settings as DescribeConfigs shows them, each with where it comes from, and changes to them.

A topic's own override is stronger than the broker's layers (``config_layers``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from kafka_client.errors import ConfigError, ErrorCode, KafkaError
from logd.broker.topics.config_layers import ALL_BROKERS, ConfigLayers, Source, Synonym
from logd.config.broker import BROKER_SETTINGS
from logd.config.inert import INERT_SETTINGS
from logd.config.known import REFUSED_PREFIXES, SECURITY_PREFIXES
from logd.config.security_keys import is_reloaded
from logd.config.setting import Kind, Setting, format_value
from logd.config.topic import TOPIC_SETTINGS, TopicConfig

BROKER_KEYS: Mapping[str, Setting] = {**BROKER_SETTINGS, **INERT_SETTINGS}
"""The declared broker settings; undeclared ones are only stored and described."""


class Described(NamedTuple):
    """A setting of a resource; ``synonyms`` are its layers, strongest first."""

    key: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    synonyms: list[Synonym]
    kind: Kind
    documentation: str


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs on a key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """An operation on a key; the value is None for DELETE."""

    key: str
    operation: int
    value: str | None


# Describing


def described_topic_configs(
    overrides: Mapping[str, str], effective: TopicConfig, layers: ConfigLayers
) -> list[Described]:
    """Return every setting of a topic; ``effective`` are the settings that result from the overrides."""
    described = []
    for key, declared in TOPIC_SETTINGS.items():
        synonyms = [Synonym(key, overrides[key], Source.TOPIC)] if key in overrides else []
        for name in declared.broker_keys:
            synonyms += layers.synonyms(name)
        if len(declared.broker_keys) == 1:
            synonyms.append(Synonym(declared.broker_keys[0], format_value(declared.default), Source.DEFAULT))
        described.append(
            Described(
                key,
                format_value(getattr(effective, declared.field)),
                synonyms[0].source if synonyms else Source.DEFAULT,
                False,
                declared.sensitive,
                synonyms,
                declared.kind,
                declared.doc,
            )
        )
    return described


def described_broker_configs(layers: ConfigLayers) -> list[Described]:
    """Return every setting of this broker, including undeclared ones that were set."""
    described = []
    unknown = [key for changed in layers.changed.values() for key in changed if key not in BROKER_KEYS]
    for key in dict.fromkeys((*sorted(BROKER_KEYS), *unknown)):
        declared, synonyms = _declared(key), layers.synonyms(key)
        if not synonyms and declared.kind is Kind.UNKNOWN:
            continue
        if declared.default is not None or not synonyms:
            synonyms.append(Synonym(key, format_value(declared.default), Source.DEFAULT))
        described.append(_described_broker(declared, synonyms))
    return described


def described_cluster_configs(layers: ConfigLayers) -> list[Described]:
    """Return the settings that were changed for all brokers."""
    changed = layers.changed.get(ALL_BROKERS, {})
    return [
        _described_broker(_declared(key), [Synonym(key, value, Source.ALL_BROKERS)])
        for key, value in changed.items()
    ]


def _declared(key: str) -> Setting:
    return BROKER_KEYS.get(key) or Setting(key=key, kind=Kind.UNKNOWN, default=None, doc="Not known here.")


def _described_broker(declared: Setting, synonyms: list[Synonym]) -> Described:
    if declared.sensitive:
        synonyms = [synonym._replace(value=None) for synonym in synonyms]
    return Described(
        declared.key,
        synonyms[0].value,
        synonyms[0].source,
        not declared.dynamic,
        declared.sensitive,
        synonyms,
        declared.kind,
        declared.doc,
    )


# Changing


def altered(
    current: Mapping[str, str],
    effective: Mapping[str, str | None],
    settings: Mapping[str, Setting],
    alterations: Iterable[Alteration],
) -> dict[str, str]:
    """Return the overrides after the alterations. APPEND and SUBTRACT start from the ``effective`` values.

    Raises KafkaError INVALID_REQUEST or INVALID_CONFIG. The caller checks whether the result is allowed.
    """
    result = dict(current)
    names: set[str] = set()
    for key, operation, value in alterations:
        if key in names:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} stands in the request twice")
        names.add(key)
        if operation == Operation.DELETE:
            result.pop(key, None)
            continue
        if value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} needs a value")
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


def check_dynamic(broker: str, configs: Mapping[str, str]) -> None:
    """Raise KafkaError(INVALID_REQUEST) unless all of these can be set for ``broker`` (a node id, or all)
    while it runs, and the values of those without effect are allowed; an undeclared key passes.
    """
    for key, value in configs.items():
        declared = BROKER_KEYS.get(key)
        is_store = key.startswith(SECURITY_PREFIXES) and is_reloaded(key)
        if declared is None:
            is_fixed = key.startswith(REFUSED_PREFIXES) and not is_store
        else:
            is_fixed = not declared.dynamic
        if is_fixed:
            reason = "cannot be changed while the broker runs; set it before the start"
        elif (is_store or (declared is not None and declared.per_broker)) and broker == ALL_BROKERS:
            reason = "cannot be set for all brokers at once; name the broker by its id"
        else:
            _check_inert(key, value)
            continue
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} {reason}")


def _check_inert(key: str, value: str) -> None:
    if (inert := INERT_SETTINGS.get(key)) is not None:
        try:
            inert.parse(value)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
