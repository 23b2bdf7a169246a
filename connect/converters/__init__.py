"""Converters between Connect's values and the bytes in the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from connect.config import unknown_keys
from connect.config.plugin_path import PLUGIN_PATH, loaded, newest, version_range
from connect.config.references import load
from connect.converters.base import Converter, HeaderConverter, SchemaAndValue
from connect.converters.bytearrays import ByteArrayConverter
from connect.converters.headers import AnyHeaderConverter, SimpleHeaderConverter
from connect.converters.json import JsonConverter
from connect.converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from connect.converters.strings import StringConverter
from connect.errors import ConfigError, ConnectError

__all__ = [
    "BooleanConverter",
    "ByteArrayConverter",
    "Converter",
    "DoubleConverter",
    "FloatConverter",
    "HeaderConverter",
    "IntegerConverter",
    "JsonConverter",
    "LongConverter",
    "SchemaAndValue",
    "ShortConverter",
    "SimpleHeaderConverter",
    "StringConverter",
    "converter_class",
    "converter_names",
    "make_converter",
    "make_header_converter",
    "unknown_settings",
]

T = TypeVar("T")

_LAZY = {
    "avro": "connect.converters.avro:AvroConverter",
    "io.confluent.connect.avro.AvroConverter": "connect.converters.avro:AvroConverter",
    "protobuf": "connect.converters.protobuf:ProtobufConverter",
    "io.confluent.connect.protobuf.ProtobufConverter": "connect.converters.protobuf:ProtobufConverter",
    "json-schema": "connect.converters.json_schema:JsonSchemaConverter",
    "io.confluent.connect.json.JsonSchemaConverter": "connect.converters.json_schema:JsonSchemaConverter",
}
"""Converters with libraries of their own, imported when they are used."""
_NAMES: dict[str, type[Any]] = {
    "json": JsonConverter,
    "string": StringConverter,
    "bytes": ByteArrayConverter,
    "simple": SimpleHeaderConverter,
    "boolean": BooleanConverter,
    "short": ShortConverter,
    "integer": IntegerConverter,
    "long": LongConverter,
    "float": FloatConverter,
    "double": DoubleConverter,
    "org.apache.kafka.connect.json.JsonConverter": JsonConverter,
    "org.apache.kafka.connect.storage.StringConverter": StringConverter,
    "org.apache.kafka.connect.converters.ByteArrayConverter": ByteArrayConverter,
    "org.apache.kafka.connect.converters.BooleanConverter": BooleanConverter,
    "org.apache.kafka.connect.converters.ShortConverter": ShortConverter,
    "org.apache.kafka.connect.converters.IntegerConverter": IntegerConverter,
    "org.apache.kafka.connect.converters.LongConverter": LongConverter,
    "org.apache.kafka.connect.converters.FloatConverter": FloatConverter,
    "org.apache.kafka.connect.converters.DoubleConverter": DoubleConverter,
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": SimpleHeaderConverter,
}
"""Our names and Kafka's; the last part of Kafka's name is also accepted."""


_VERSION = "plugin.version"


def _class_named(key: str, name: str, version: str | None = None) -> type[Any]:
    if version is not None:
        return _of_version(key, name, version)
    for alias, converter in _NAMES.items():
        if name in (alias, alias.rpartition(".")[2]):
            return converter
    for alias, place in _LAZY.items():
        if name in (alias, alias.rpartition(".")[2]):
            name = place
    if ":" not in name and "." not in name:
        names = ", ".join(n for n in (*_NAMES, *_LAZY) if "." not in n)
        raise ConfigError(key, name, f"is no converter; known are {names}")
    try:
        converter = load(name)
    except ConnectError as e:
        raise ConfigError(key, name, str(e)) from e
    if not isinstance(converter, type):
        raise ConfigError(key, name, "is not a class")
    return converter


def _of_version(key: str, name: str, version: str) -> type[Any]:
    """Return the newest class in a range of versions: of those in `plugin.path`, and the one without it."""
    setting = f"{key}.{_VERSION}"
    versions = version_range(setting, version)
    offers = PLUGIN_PATH.named(name, "millstream.converters", (Converter, HeaderConverter))
    try:
        classes = loaded(offers, object)
        with suppress(ConfigError):  # then it is only in plugin.path
            classes.append(_class_named(key, name))
    except ConnectError as e:
        raise ConfigError(key, name, str(e)) from e
    if not classes:
        return _class_named(key, name)
    return newest(setting, name, versions, classes)


def converter_class(key: str, name: str, version: str | None = None) -> type[Any]:
    """Return the class of the converter `name` of the setting `key`.

    With a `version`, the newest in its range (KIP-891). Raises ConfigError if there is none.
    """
    return _class_named(key, name, version)


def converter_names() -> list[str]:
    """Return the names of all converters, ours and Kafka's."""
    return list(_NAMES)


def make_converter(key: str, name: str, config: Mapping[str, Any]) -> Converter:
    """Create the converter `name` of the setting `key` (`key.converter` or `value.converter`).

    Raises ConfigError if `name` is no converter, or it refuses its settings in `config`.
    """
    converter, config = _chosen(key, name, config)
    if not issubclass(converter, Converter):
        raise ConfigError(key, name, "is not a converter")
    return _made(key, name, lambda: converter(config, is_key=key.startswith("key.")))


def unknown_settings(key: str, name: str, config: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the settings in `config` that the converter has not declared, each with the most similar one."""
    plugin, config = _chosen(key, name, config)
    declared = getattr(plugin, "CONFIG", None)
    return {} if declared is None else unknown_keys([declared], config, ["converter.type"])


def make_header_converter(name: str, config: Mapping[str, Any]) -> HeaderConverter:
    """Create the header converter `name` with its settings. Raises ConfigError as `make_converter` does.

    Every converter of values converts headers, too.
    """
    converter, config = _chosen("header.converter", name, config)
    if issubclass(converter, Converter):
        return _made("header.converter", name, lambda: AnyHeaderConverter(converter(config, is_key=False)))
    if not issubclass(converter, HeaderConverter):
        raise ConfigError("header.converter", name, "is not a header converter")
    return _made("header.converter", name, lambda: converter(config))


def _chosen(key: str, name: str, config: Mapping[str, Any]) -> tuple[type[Any], Mapping[str, Any]]:
    """Return a converter's class, of the version that `plugin.version` names, and its own settings."""
    own = {each: value for each, value in config.items() if each != _VERSION}
    version = config.get(_VERSION)
    return _class_named(key, name, None if version is None else str(version)), own


def _made(key: str, name: str, make: Callable[[], T]) -> T:
    """Create a converter. Raises ConfigError, with the worker's key, for any error."""
    try:
        return make()
    except ConfigError as e:
        raise ConfigError(f"{key}.{e.key}", e.value, e.allowed) from e
    except Exception as e:
        raise ConfigError(key, name, f"cannot be made: {e!r}") from e
