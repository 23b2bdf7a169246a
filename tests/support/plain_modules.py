"""Compiled modules as plain Python, beside their compiled form."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from kafka_client.uncompiled import SourceFinder


def plain_module(name: str) -> ModuleType:
    """Return the module run from its source, whichever form `import` gives."""
    path = importlib.import_module(name.rpartition(".")[0]).__path__
    spec = SourceFinder().find_spec(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
