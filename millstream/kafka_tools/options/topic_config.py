"""Settings of a new topic, checked before any broker is asked, in the words of Kafka's ConfigDef."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import COMMON, JavaError, illegal_argument

if TYPE_CHECKING:
    from logd.config.setting import Setting


LEAST = {"segment.bytes": 1024 * 1024}
"""Lower bounds that Kafka's tools check and logd does not."""
THROTTLED = (
    "{} must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
WORDS = {
    "compression.type": "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
    "compression.gzip.level": "Value must be between 1 and 9 or equal to -1",
    "leader.replication.throttled.replicas": THROTTLED.format("leader.replication.throttled.replicas"),
    "follower.replication.throttled.replicas": THROTTLED.format("follower.replication.throttled.replicas"),
}
"""Kafka's messages for settings with checks of their own."""


def parse_topic_config(texts: Sequence[str]) -> dict[str, str]:
    """Parse `key=value` arguments. Raises JavaError for another form, an unknown key or an invalid value."""
    settings = {}
    for text in texts:
        # As Java's split, which leaves out what is empty at the end.
        parts = re.split(r"\s*=\s*", text)
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise illegal_argument(
                "requirement failed: Invalid topic config: all configs to be added must be in the format "
                '"key=val".'
            )
        settings[parts[0].strip()] = parts[1].strip()
    check_topic_config(settings)
    return settings


def check_topic_config(config: Mapping[str, str]) -> None:
    """Raise JavaError for an unknown key or an invalid value."""
    from logd.config import TOPIC_SETTINGS

    for key in config:
        if key not in TOPIC_SETTINGS:
            raise JavaError(
                f"{COMMON}.errors.InvalidConfigurationException", f"Unknown topic config name: {key}"
            )
    for key, value in config.items():
        check_value(TOPIC_SETTINGS[key], value)


def check_value(setting: Setting, text: str) -> None:
    """Raise Java's ConfigException for a value of another type or out of range."""
    from kafka_client.errors import ConfigError

    try:
        value = setting.parse(text)
        if (least := LEAST.get(setting.key)) is not None and isinstance(value, int) and value < least:
            raise ConfigError(setting.key, text, f"{least} or more")
    except ConfigError:
        raise JavaError(
            f"{COMMON}.config.ConfigException",
            f"Invalid value {_shown(setting, text)} for configuration {setting.key}: {_why(setting, text)}",
        ) from None


def _why(setting: Setting, text: str) -> str:
    from logd.config.setting import Kind

    kind, allowed = setting.kind, setting.allowed.text if setting.allowed is not None else ""
    if kind is Kind.BOOLEAN:
        return "Expected value to be either true or false"
    if kind in (Kind.INT, Kind.LONG, Kind.SHORT, Kind.DOUBLE) and not _is_of(kind, text):
        return f"Not a number of type {kind.name}"
    if setting.key in LEAST:
        return f"Value must be at least {LEAST[setting.key]}"
    if setting.key in WORDS:
        return WORDS[setting.key]
    if (least := re.fullmatch(r"(\S+) or more", allowed)) is not None:
        return f"Value must be at least {least[1]}"
    if (range_ := re.fullmatch(r"(\S+) to (\S+)", allowed)) is not None:
        is_low = float(text) < float(range_[1])
        return f"Value must be {'at least' if is_low else 'no more than'} {range_[1 if is_low else 2]}"
    if (one := re.fullmatch(r"one of (.+)", allowed)) is not None:
        return f"String must be one of: {one[1]}"
    if (words := re.fullmatch(r"(.+), each or none of them", allowed)) is not None:
        return f"String must be one of: {', '.join(sorted(words[1].split(' and ')))}"
    return allowed


def _is_of(kind: int, text: str) -> bool:
    from logd.config.setting import Kind

    if kind == Kind.DOUBLE:
        return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) is not None
    if re.fullmatch(r"[+-]?\d+", text) is None:
        return False
    bits = {Kind.INT: 31, Kind.LONG: 63, Kind.SHORT: 15}[Kind(kind)]
    number = int(text)
    return (number if number >= 0 else ~number).bit_length() <= bits


def _shown(setting: Setting, text: str) -> str:
    """Return the text in the error message: a list's first invalid word, a number as Java writes it."""
    from logd.config.setting import Kind

    if setting.kind is Kind.LIST and setting.key in WORDS:
        return f"[{', '.join(word.strip() for word in text.split(','))}]"
    if setting.kind is Kind.LIST:
        allowed = (setting.allowed.text if setting.allowed else "").split(",")[0].split(" and ")
        return next((word.strip() for word in text.split(",") if word.strip() not in allowed), text)
    if setting.kind is Kind.DOUBLE and _is_of(Kind.DOUBLE, text):
        return str(float(text))
    return text
