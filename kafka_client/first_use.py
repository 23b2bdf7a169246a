"""Packages that import a name when it is first asked for: who wants one part does not wait for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def at_first_use(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The package's `__getattr__`; `modules` says which module has which of its names.

    The type checker does not read that: the same imports stand under TYPE_CHECKING (a test compares).
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(module), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
