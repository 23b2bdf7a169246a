"""Lazy imports of a package's names: an import of one part does not wait for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def at_first_use(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the package's `__getattr__`; `modules` gives the names of each module.

    Type checkers do not read `modules`: the package repeats the imports under TYPE_CHECKING, and a test
    compares both.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
