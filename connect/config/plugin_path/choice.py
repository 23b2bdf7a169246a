"""The choice of one version among the classes that have a name (KIP-891)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from connect.config.plugin_path.path import Offer
from connect.config.plugin_path.versions import VersionRange, version_key
from connect.errors import ConfigError, ConnectError

_T = TypeVar("_T")


def version_range(key: str, version: str | None) -> VersionRange | None:
    """Return the range that the setting `key` names; None for all versions. Raises ConfigError."""
    try:
        return VersionRange.parse(version)
    except ValueError as e:
        raise ConfigError(key, version, str(e)) from e


def newest(key: str, name: str, versions: VersionRange | None, classes: Sequence[type[_T]]) -> type[_T]:
    """Return the newest class in the range. Raises ConfigError, with the versions there are, if none is."""
    fitting = [each for each in classes if versions is None or version_of(each) in versions]
    if not fitting:
        others = sorted({version_of(each) for each in classes}, key=version_key)
        text = None if versions is None else versions.text
        raise ConfigError(key, text, f"is no version of {name}; there are {', '.join(others) or 'none'}")
    return max(fitting, key=lambda each: version_key(version_of(each)))


def version_of(plugin: type[object]) -> str:
    """Return the version of a plugin's class; "0" if it has none."""
    return str(getattr(plugin, "VERSION", "0"))


def loaded(offers: Sequence[Offer], base: type[_T]) -> list[type[_T]]:
    """Return the subclasses of `base` that can be loaded. Raises ConnectError if none of several can."""
    classes: list[type[_T]] = []
    failure: ConnectError | None = None
    for offer in offers:
        try:
            plugin = offer.load()
        except ConnectError as e:
            failure = e
            continue
        if isinstance(plugin, type) and issubclass(plugin, base):
            classes.append(plugin)
    if failure is not None and not classes:
        raise failure
    return classes
