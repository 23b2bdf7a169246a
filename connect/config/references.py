"""From a name in a config to the object it names."""

from __future__ import annotations

import importlib
from typing import Any

from connect.errors import ConnectError


def load(reference: str) -> Any:
    """The object behind `package.module:Name` (or `package.module.Name`).

    A module that is not there is a ConnectError saying so; a module that fails while being imported
    raises its own error, as the cause.
    """
    module_name, _, attribute = reference.partition(":") if ":" in reference else reference.rpartition(".")
    if not module_name or not attribute:
        raise ConnectError(f"{reference!r} names no class: write module:Class")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as e:
        raise ConnectError(f"{reference!r} cannot be loaded: {e}") from e
    return found
