"""Finds connector classes: entry points of the group `millstream.connectors`, `plugin.path`, `module:Class`.

An entry point's name is the value of `connector.class`. A plugin registers Kafka's class name as well as its
short one, so that a connector's JSON works unchanged. As in Kafka, the last part of a dotted name is enough,
with or without `Connector` at its end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any
from weakref import WeakKeyDictionary

from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from connect.config.plugin_path import PLUGIN_PATH, Offer, newest, version_range
from connect.config.references import load
from connect.errors import ConnectError, NotFound

GROUP = "millstream.connectors"
BASES = (SourceConnector, SinkConnector)
ConnectorClass = type[SourceConnector] | type[SinkConnector]
_VERSION = "connector.plugin.version"
_PLACES: WeakKeyDictionary[ConnectorClass, Offer] = WeakKeyDictionary()


@cache
def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def registered_names() -> Collection[str]:
    """Return the names of all plugins, without importing any."""
    return {**_registered(), **dict.fromkeys(offer.name for offer in PLUGIN_PATH.offers(GROUP, BASES))}


def connector_class(name: str, version: str | None = None) -> ConnectorClass:
    """Return the connector class with this name, of a version in the range `version` (KIP-891).

    Without a range, a plugin that is installed comes before those of `plugin.path`, of which the newest
    counts; `latest` is the newest of all. Raises NotFound, with the names that there are, if there is none,
    and ConfigError, with the versions that there are, if none is in the range.
    """
    versions = version_range(_VERSION, version)
    offers = PLUGIN_PATH.named(name, GROUP, BASES)
    if version is None and not (offers and _is_only_offered(name)):
        return _installed(name)
    classes = _loaded(offers)
    if not _is_only_offered(name):
        try:
            classes.append(_installed(name))
        except NotFound:
            if not offers:
                raise
    return newest(_VERSION, name, versions, classes)


def named_version(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the arguments of `connector_class` for a connector's config. Raises KeyError without a class."""
    version = config.get(_VERSION)
    # Another worker may have stored a number or null as the class.
    return (str(config["connector.class"]), *([] if version is None else [str(version)]))


def reload_plugins() -> None:
    """Look for plugins again, as some may have been installed, changed or removed."""
    PLUGIN_PATH.rescan()
    _registered.cache_clear()


def _loaded(offers: Sequence[Offer]) -> list[ConnectorClass]:
    """Return the classes that can be loaded. Raises ConnectError if none of several can."""
    classes: list[ConnectorClass] = []
    failure: ConnectError | None = None
    for offer in offers:
        try:
            plugin = offer.load()
        except ConnectError as e:
            failure = e
            continue
        if isinstance(plugin, type) and issubclass(plugin, BASES):
            classes.append(plugin)
            _PLACES[plugin] = offer
        else:
            failure = NotFound(f"{offer.reference!r} in {offer.plugin.location} is not a connector class")
    if failure is not None and not classes:
        raise failure
    return classes


def _is_only_offered(name: str) -> bool:
    """Return True unless a plugin of this name is installed, or its module is importable."""
    if _find(name) is not None:
        return False
    if ":" not in name and "." not in name:
        return True
    top = name.partition(":")[0].partition(".")[0]
    try:
        return find_spec(top) is None
    except (ImportError, ValueError):
        return True


def place_of(plugin: ConnectorClass) -> Offer | None:
    """Return where in `plugin.path` a class is; None for one that is installed."""
    return _PLACES.get(plugin)


def _installed(name: str) -> ConnectorClass:
    point = _find(name)
    if point is None and ":" not in name and "." not in name:
        raise NotFound(f"no connector {name!r}; there are {', '.join(sorted(registered_names())) or 'none'}")
    plugin: Any = load(name if point is None else point.value)
    if not (isinstance(plugin, type) and issubclass(plugin, BASES)):
        raise NotFound(f"{name!r} is not a connector class")
    return plugin


def _find(name: str) -> EntryPoint | None:
    registered = _registered()
    if name in registered:
        return registered[name]
    short = {n.rpartition(".")[2].removesuffix("Connector"): point for n, point in registered.items()}
    return short.get(name.removesuffix("Connector")) if "." not in name else None


def connector_type(plugin: ConnectorClass) -> str:
    """Return `source` or `sink`."""
    return "source" if issubclass(plugin, SourceConnector) else "sink"


def list_plugins() -> list[dict[str, str]]:
    """Return the response of GET /connector-plugins, each plugin with its location.

    A plugin that fails to load has an `error`.
    """
    reload_plugins()
    plugins = []
    for name in sorted(_registered()):
        try:
            plugin = _installed(name)
        except ConnectError as e:
            plugins.append({"class": name, "error": str(e), "location": "installed"})
            continue
        plugins.append(_listed(name, plugin, "installed"))
    for offer in PLUGIN_PATH.offers(GROUP, BASES):
        location = str(offer.plugin.location)
        try:
            (plugin,) = _loaded([offer])
        except ConnectError as e:
            PLUGIN_PATH.tell(str(e))
            plugins.append({"class": offer.name, "error": str(e), "location": location})
            continue
        plugins.append(_listed(offer.name, plugin, location))
    return plugins


def _listed(name: str, plugin: ConnectorClass, location: str) -> dict[str, str]:
    return {
        "class": name,
        "type": connector_type(plugin),
        "version": plugin.VERSION,
        "location": location,
    }
