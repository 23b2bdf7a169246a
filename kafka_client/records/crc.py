"""CRC-32C, by the extension in the package `crc32c` without the rest of it.

The package imports its command line and looks up its own version, which takes a tenth of a broker's start.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from crc32c import crc32c

_PACKAGE: Final = "crc32c"
_EXTENSION: Final = f"{_PACKAGE}._crc32c"


def _extension() -> Any:
    """Return the extension's module; raises ImportError if this version of the package has it elsewhere."""
    if _EXTENSION in sys.modules:
        return sys.modules[_EXTENSION]
    package = importlib.util.find_spec(_PACKAGE)
    folders = None if package is None else package.submodule_search_locations
    spec = PathFinder.find_spec(_EXTENSION, folders)
    if spec is None or spec.loader is None:
        raise ImportError(_EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_EXTENSION] = module  # the package's own, should it be imported later
    return module


try:
    crc32c = _extension().crc32c
except (ImportError, AttributeError):
    from crc32c import crc32c

__all__ = ["crc32c"]
