"""Finds the plugins of this distribution although another package has the name `plugins`.

The folder `plugins/` lies beside `connect/`, and is imported by that name. A user's folder or module of the
same name in the current folder is found before it, and would hide it. Python looks for `plugins.files` in
`plugins.__path__` alone. So our folder is put there, in front of the user's, whose modules are found, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

NAME = "plugins"
_FOLDER = str(Path(__file__).resolve().parents[2] / NAME)


def find_own_plugins() -> None:
    """Make the modules of this distribution's `plugins` importable, whichever package has that name.

    Modules of other folders of the name, with or without `__init__.py`, are importable after them.
    """
    package = _imported()
    others = [str(Path(entry or ".").resolve() / NAME) for entry in sys.path]
    folders = [*getattr(package, "__path__", ()), *filter(os.path.isdir, others)]
    package.__path__ = list(dict.fromkeys((_FOLDER, *folders)))


def _imported() -> ModuleType:
    """Return the package of this name; ours if the user's own cannot be imported."""
    try:
        return importlib.import_module(NAME)
    except Exception:
        spec = importlib.util.spec_from_file_location(
            NAME, f"{_FOLDER}/__init__.py", submodule_search_locations=[_FOLDER]
        )
        assert spec is not None and spec.loader is not None
        sys.modules[NAME] = package = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
        return package
