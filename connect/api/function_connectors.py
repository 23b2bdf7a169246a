"""Connector classes that the decorators `@source` and `@sink` make of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from connect.api.sink import SinkConnector
from connect.api.source import SourceConnector
from connect.config import Config

C = TypeVar("C", type[SourceConnector], type[SinkConnector])


def connector_of(
    connector: C,
    function: Callable[..., Any],
    task: type,
    attributes: Mapping[str, Any],
    *,
    name: str,
    config: type[Config] | None,
    version: str,
) -> C:
    """Return a subclass of `connector` with this name, documented as `function`.

    The connector's tasks are of a subclass of `task` with `attributes`, `function` and, as `declaration`, the
    config's class, which is None for functions that take a mapping.
    """
    own = {**attributes, "function": staticmethod(function), "declaration": config}
    members = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "CONFIG": config or Config,
        "VERSION": version,
        "task_class": type(f"{name}Task", (task,), own),
    }
    return type(name, (connector,), members)


def settings_of(declaration: type[Config] | None, config: Mapping[str, str]) -> Any:
    """Return a function's first argument: the parsed config, or the settings as a mapping."""
    return dict(config) if declaration is None else declaration.parse(config)
