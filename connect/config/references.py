"""From a name in a config to the object it names."""

from __future__ import annotations

import importlib
import traceback
from typing import Any

from connect.errors import ConnectError


def load(reference: str) -> Any:
    """The object behind `package.module:Name` (or `package.module.Name`).

    ConnectError if it is not there, or fails while being imported, with its own error as the cause.
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
    except Exception as e:
        raise ConnectError(f"{reference!r} cannot be loaded: {e!r}{_place(e)}") from e
    return found


def _place(error: Exception) -> str:
    """Where in the module it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return "" if isinstance(error, SyntaxError) else f", {frames[-1].filename} line {frames[-1].lineno}"
