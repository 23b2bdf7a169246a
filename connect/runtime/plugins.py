"""Finds connector classes: entry points of the group `millstream.connectors`, or `module:Class`.

An entry point's name is the value of `connector.class`. A plugin registers Kafka's class name as well as its
short one, so that a connector's JSON works unchanged. As in Kafka, the last part of a dotted name is enough,
with or without `Connector` at its end.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from connect.config.references import load
from connect.errors import ConnectError, NotFound

GROUP = "millstream.connectors"
ConnectorClass = type[SourceConnector] | type[SinkConnector]


@cache
def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def registered_names() -> Collection[str]:
    """Return the names of all plugins, without importing any."""
    return _registered().keys()


def connector_class(name: str) -> ConnectorClass:
    """Return the connector class with this name.

    Raises NotFound, with the names of all plugins, if none has.
    """
    point = _find(name)
    if point is None and ":" not in name and "." not in name:
        raise NotFound(f"no connector {name!r}; there are {', '.join(sorted(_registered())) or 'none'}")
    plugin: Any = load(name if point is None else point.value)
    if not (isinstance(plugin, type) and issubclass(plugin, (SourceConnector, SinkConnector))):
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
    """Return the response of GET /connector-plugins; a plugin that fails to load has an `error`."""
    plugins = []
    for name in sorted(_registered()):
        try:
            plugin = connector_class(name)
        except ConnectError as e:
            plugins.append({"class": name, "error": str(e)})
            continue
        plugins.append({"class": name, "type": connector_type(plugin), "version": plugin.VERSION})
    return plugins
