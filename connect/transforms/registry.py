"""Finds classes of transforms and predicates: Kafka's names, entry points, or `module:Class`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from connect.api.transform import Predicate, Transform
from connect.config.plugin_path import PLUGIN_PATH, loaded, newest, version_range
from connect.config.references import load, newest_offered
from connect.errors import ConfigError, ConnectError
from connect.transforms.cast import CastKey, CastValue
from connect.transforms.extract_field import ExtractFieldKey, ExtractFieldValue
from connect.transforms.filter import Filter
from connect.transforms.flatten import FlattenKey, FlattenValue
from connect.transforms.header_from import HeaderFromKey, HeaderFromValue
from connect.transforms.headers import DropHeaders, InsertHeader
from connect.transforms.hoist_field import HoistFieldKey, HoistFieldValue
from connect.transforms.insert_field import InsertFieldKey, InsertFieldValue
from connect.transforms.mask_field import MaskFieldKey, MaskFieldValue
from connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from connect.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from connect.transforms.routers import RegexRouter, TimestampRouter
from connect.transforms.set_schema_metadata import SetSchemaMetadataKey, SetSchemaMetadataValue
from connect.transforms.timestamp_converter import TimestampConverterKey, TimestampConverterValue
from connect.transforms.value_to_key import ValueToKey

_PACKAGE = "org.apache.kafka.connect.transforms."
_T = TypeVar("_T")

TRANSFORMS: dict[str, type[Transform]] = {
    "Cast$Key": CastKey,
    "Cast$Value": CastValue,
    "DropHeaders": DropHeaders,
    "ExtractField$Key": ExtractFieldKey,
    "ExtractField$Value": ExtractFieldValue,
    "Filter": Filter,
    "Flatten$Key": FlattenKey,
    "Flatten$Value": FlattenValue,
    "HeaderFrom$Key": HeaderFromKey,
    "HeaderFrom$Value": HeaderFromValue,
    "HoistField$Key": HoistFieldKey,
    "HoistField$Value": HoistFieldValue,
    "InsertField$Key": InsertFieldKey,
    "InsertField$Value": InsertFieldValue,
    "InsertHeader": InsertHeader,
    "MaskField$Key": MaskFieldKey,
    "MaskField$Value": MaskFieldValue,
    "RegexRouter": RegexRouter,
    "ReplaceField$Key": ReplaceFieldKey,
    "ReplaceField$Value": ReplaceFieldValue,
    "SetSchemaMetadata$Key": SetSchemaMetadataKey,
    "SetSchemaMetadata$Value": SetSchemaMetadataValue,
    "TimestampConverter$Key": TimestampConverterKey,
    "TimestampConverter$Value": TimestampConverterValue,
    "TimestampRouter": TimestampRouter,
    "ValueToKey": ValueToKey,
}
"""Kafka's transforms, by the part of the class name behind the package."""

PREDICATES: dict[str, type[Predicate]] = {
    "HasHeaderKey": HasHeaderKey,
    "RecordIsTombstone": RecordIsTombstone,
    "TopicNameMatches": TopicNameMatches,
}
"""Kafka's predicates, by the part of the class name behind the package."""


@cache
def _registered(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def transform_class(key: str, name: str, version: str | None = None) -> type[Transform]:
    """Return the transform class `name`, the value of the setting `key`.

    Kafka's class name counts with its package or without. Others are entry points of the group
    `millstream.transforms`, or `module:Class`. With a `version`, the newest in its range (KIP-891).
    Raises ConfigError if `name` is no transform, or no version of it is in the range.
    """
    if version is not None:
        return _of_version(key, name, version, "millstream.transforms", Transform, transform_class)
    built_in = TRANSFORMS.get(name.removeprefix(_PACKAGE))
    return built_in or _loaded(key, name, "millstream.transforms", Transform, tuple(TRANSFORMS))


def predicate_class(key: str, name: str, version: str | None = None) -> type[Predicate]:
    """Return the predicate class `name`, found as `transform_class` finds transforms."""
    if version is not None:
        return _of_version(key, name, version, "millstream.predicates", Predicate, predicate_class)
    built_in = PREDICATES.get(name.removeprefix(_PACKAGE).removeprefix("predicates."))
    return built_in or _loaded(key, name, "millstream.predicates", Predicate, tuple(PREDICATES))


def _of_version(
    key: str, name: str, version: str, group: str, base: type[_T], without: Callable[[str, str], type[_T]]
) -> type[_T]:
    """Return the newest class in a range of versions: of those in `plugin.path`, and the one `without` it."""
    setting = f"{key.removesuffix('type')}plugin.version"
    versions = version_range(setting, version)
    try:
        classes = loaded(PLUGIN_PATH.named(name, group, (base,)), base)
    except ConnectError as e:
        raise ConfigError(key, name, str(e)) from e
    return newest(setting, name, versions, [*classes, without(key, name)])


def _loaded(key: str, name: str, group: str, base: type[_T], built_in: tuple[str, ...]) -> type[_T]:
    """Return the class of an entry point or a reference. Raises ConfigError unless it is a `base`."""
    noun = base.__name__.lower()
    registered = _registered(group)
    offers = PLUGIN_PATH.named(name, group, (base,)) if name not in registered else []
    if not offers and name not in registered and ":" not in name and "." not in name:
        raise ConfigError(key, name, f"is no {noun}; there are {', '.join([*built_in, *registered])}")
    try:
        if offers and ":" not in name:
            plugin: Any = newest_offered(offers)
        else:
            plugin = load(registered[name].value if name in registered else name)
    except ConnectError as e:
        raise ConfigError(key, name, str(e)) from e
    if not (isinstance(plugin, type) and issubclass(plugin, base)):
        raise ConfigError(key, name, f"is no {noun}: its base class must be connect.api.{base.__name__}")
    return plugin
