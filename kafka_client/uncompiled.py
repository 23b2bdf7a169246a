"""Has the compiled modules run from their Python sources, as where there was no compiler.

`MILLSTREAM_NO_EXTENSIONS=1` asks for it, to debug such a module or to test it in both forms. `kafka_client`
reads the variable when it is imported, before any of those modules. Child processes inherit it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Final

VARIABLE: Final = "MILLSTREAM_NO_EXTENSIONS"
PACKAGES: Final = ("kafka_client", "streams")
"""Packages with compiled modules."""


class SourceFinder:
    """Finds the modules of `PACKAGES` as sources. Python prefers the extension beside a source."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the module's source is, None to leave the search to the other finders."""
        if path is None or name.partition(".")[0] not in PACKAGES:
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
        return None


def use_sources() -> None:
    """Have all modules that are imported from now on run from their sources."""
    sys.meta_path.insert(0, SourceFinder())
