"""Finding connector classes: entry points of the group `millstream.connectors`, or `module:Class`.

An entry point's name is what stands in `connector.class`. A plugin registers Kafka's own class name beside
its short one, so that a connector's JSON moves over unchanged; as in Kafka, the last part of a dotted name
is enough, with or without `Connector` at its end.
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
    """The names there are; nothing is imported for them."""
    return _registered().keys()


def connector_class(name: str) -> ConnectorClass:
    """The connector class of that name; NotFound names those there are."""
    point = _find(name)
    if point is None and ":" not in name and "." not in name:
        raise NotFound(f"no connector {name!r}; there are {', '.join(sorted(_registered())) or 'none'}")
    found: Any = load(name if point is None else point.value)
    if not (isinstance(found, type) and issubclass(found, (SourceConnector, SinkConnector))):
        raise NotFound(f"{name!r} is not a connector class")
    return found


def _find(name: str) -> EntryPoint | None:
    registered = _registered()
    if name in registered:
        return registered[name]
    short = {n.rpartition(".")[2].removesuffix("Connector"): point for n, point in registered.items()}
    return short.get(name.removesuffix("Connector")) if "." not in name else None


def connector_type(found: ConnectorClass) -> str:
    """`source` or `sink`."""
    return "source" if issubclass(found, SourceConnector) else "sink"


def list_plugins() -> list[dict[str, str]]:
    """What GET /connector-plugins answers; a plugin that cannot be loaded has an `error` and no type."""
    plugins = []
    for name in sorted(_registered()):
        try:
            found = connector_class(name)
        except ConnectError as e:
            plugins.append({"class": name, "error": str(e)})
            continue
        plugins.append({"class": name, "type": connector_type(found), "version": found.VERSION})
    return plugins
