"""Loads the object that a name in a config refers to."""

from __future__ import annotations

import importlib
import importlib.util
import traceback
from collections.abc import Sequence
from typing import Any

from connect.config import own_plugins
from connect.config.plugin_path import PLUGIN_PATH, Offer, loaded, newest
from connect.errors import ConnectError


def load(reference: str) -> Any:
    """Return the object named `package.module:Name` (or `package.module.Name`).

    Raises ConnectError if it does not exist or its import fails, with the original error as the cause.
    """
    module_name, _, attribute = reference.partition(":") if ":" in reference else reference.rpartition(".")
    if not module_name or not attribute:
        raise ConnectError(f"{reference!r} names no class: write module:Class")
    if offers := _offers(reference, module_name):
        return newest_offered(offers)
    try:
        if module_name.startswith(f"{own_plugins.NAME}."):
            own_plugins.find_own_plugins()
        target: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError, ValueError) as e:
        raise ConnectError(f"{reference!r} cannot be loaded: {e}") from e
    except Exception as e:
        raise ConnectError(f"{reference!r} cannot be loaded: {e!r}{_place(e)}") from e
    return target


def newest_offered(offers: Sequence[Offer]) -> Any:
    """Return the object of the highest version that can be loaded. Raises ConnectError if none can."""
    if len(offers) == 1:
        return offers[0].load()
    return newest("plugin.version", offers[0].name, None, loaded(offers, object))


def _offers(reference: str, module_name: str) -> Sequence[Offer]:
    """Return such objects in `plugin.path`; none if the worker itself has the module."""
    offers = PLUGIN_PATH.having(reference, module_name.partition(".")[0])
    if not offers or importlib.util.find_spec(module_name.partition(".")[0]) is not None:
        return []
    return offers


def _place(error: Exception) -> str:
    """Return the file and line where the error was raised, as text."""
    frames = traceback.extract_tb(error.__traceback__)
    return "" if isinstance(error, SyntaxError) else f", {frames[-1].filename} line {frames[-1].lineno}"
