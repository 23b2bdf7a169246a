"""A declared setting: its Kafka key, type, default, allowed values and documentation.

A settings class (``TopicConfig``, ``BrokerConfig``) is a ``Settings`` whose fields are made by ``setting``.
``settings_of`` returns its declarations as the table that parsing, DescribeConfigs and the documentation use.
The field's name is Kafka's key with ``.`` written as ``_``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from kafka_client.errors import ConfigError
from logd.config.settings import Settings, field

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

Value = bool | int | float | str | tuple[str, ...] | None


class Kind(IntEnum):
    """Kafka's ConfigDef types, numbered as DescribeConfigs reports them."""

    UNKNOWN = 0
    """The kind of an undeclared key: its value is stored but never shown, since it may be a secret."""
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Allowed(NamedTuple):
    """A check of a parsed value, and a text that says which values pass."""

    check: Callable[[Any], bool]
    text: str


def at_least(low: float) -> Allowed:
    """Allow numbers from ``low`` upwards."""
    return Allowed(check=lambda value: value >= low, text=f"{low} or more")


def between(low: float, high: float) -> Allowed:
    """Allow numbers from ``low`` to ``high``, both included."""
    return Allowed(check=lambda value: low <= value <= high, text=f"{low} to {high}")


def one_of(*choices: str) -> Allowed:
    """Allow one word of ``choices``."""
    return Allowed(check=lambda value: value in choices, text="one of " + ", ".join(choices))


def any_of(*choices: str) -> Allowed:
    """Allow a list whose words are all in ``choices``; it may be empty."""
    return Allowed(
        check=lambda words: all(word in choices for word in words),
        text=" and ".join(choices) + ", each or none of them",
    )


class Setting(NamedTuple):
    """The declaration of one key.

    ``broker_keys`` (topic settings only) are the broker-level keys of the same setting, in order of
    precedence. DescribeConfigs lists them as synonyms. A ``dynamic`` setting can be changed while the broker
    runs; a ``per_broker`` one cannot be changed for all brokers at once.
    """

    key: str
    kind: Kind
    default: Value
    doc: str
    allowed: Allowed | None = None
    nullable: bool = False
    dynamic: bool = False
    per_broker: bool = False
    broker_keys: tuple[str, ...] = ()

    @property
    def field(self) -> str:
        """The attribute's name in the settings class."""
        return self.key.replace(".", "_")

    @property
    def sensitive(self) -> bool:
        """True if the value must never be shown."""
        return self.kind in (Kind.PASSWORD, Kind.UNKNOWN)

    def parse(self, text: str | None) -> Value:
        """Return the value of ``text``; raises ConfigError with the key, the value and what is allowed."""
        is_blank = text is None or (text.strip() == "" and self.kind not in _NUMBERS)
        if self.nullable and is_blank:
            return None
        if text is None:
            raise ConfigError(self.key, text, self.expected)
        try:
            value = _PARSERS[self.kind](text.strip())
        except ValueError:
            raise ConfigError(self.key, self.shown(text), self.expected) from None
        if self.allowed is not None and not self.allowed.check(value):
            raise ConfigError(self.key, self.shown(text), self.expected)
        return value

    @property
    def expected(self) -> str:
        """The allowed values, in words for an error message."""
        words = _KIND_WORDS[self.kind]
        return f"{words}, {self.allowed.text}" if self.allowed is not None else words

    def shown(self, text: str) -> str:
        """Return the value as an error message may show it: hidden if it is sensitive."""
        return "[hidden]" if self.sensitive else text


def format_value(value: Value) -> str | None:
    """Return a parsed value as Kafka writes it in DescribeConfigs."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def setting(kind: Kind, default: Value, doc: str, *, key: str = "", **facts: Any) -> Any:
    """Return a field with its ``Setting``; without ``key`` the key is made from the field's name."""
    return field(default, Setting(key, kind, default, doc, **facts))


def settings_of(config_class: type[Settings]) -> Mapping[str, Setting]:
    """Return the declared settings of a class by Kafka key, in the order of declaration."""
    table: dict[str, Setting] = {}
    for name, declared in config_class.fields.items():
        if isinstance(declared.about, Setting):
            key = declared.about.key or name.replace("_", ".")
            table[key] = declared.about._replace(key=key)
    return table


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def _parse_whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high or not text.lstrip("+-").isdigit():
            raise ValueError(text)
        return value

    return parse


def _parse_double(text: str) -> float:
    if "_" in text:  # Python would take it, Java does not
        raise ValueError(text)
    return float(text)


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


_PARSERS: Mapping[Kind, Callable[[str], Value]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.STRING: str,
    Kind.INT: _parse_whole(-INT_MAX - 1, INT_MAX),
    Kind.SHORT: _parse_whole(-32768, 32767),
    Kind.LONG: _parse_whole(-LONG_MAX - 1, LONG_MAX),
    Kind.DOUBLE: _parse_double,
    Kind.LIST: _parse_list,
    Kind.CLASS: str,
    Kind.PASSWORD: str,
    Kind.UNKNOWN: str,
}

_NUMBERS = (Kind.INT, Kind.SHORT, Kind.LONG, Kind.DOUBLE)
"""Kinds for which an empty text is not a value."""

_KIND_WORDS: Mapping[Kind, str] = {
    Kind.BOOLEAN: "true or false",
    Kind.STRING: "a word",
    Kind.INT: "a whole number of 32 bits",
    Kind.SHORT: "a whole number of 16 bits",
    Kind.LONG: "a whole number of 64 bits",
    Kind.DOUBLE: "a number",
    Kind.LIST: "words separated by commas",
    Kind.CLASS: "a class name",
    Kind.PASSWORD: "a secret",
    Kind.UNKNOWN: "anything",
}
