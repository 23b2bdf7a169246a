"""PluginFolder: one plugin in a folder of `plugin.path`: its modules, its entry points and its version."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

_FILES_MAX = 50_000
"""Files of a plugin whose changes are noticed."""


@dataclass(frozen=True, slots=True)
class PluginFolder:
    """A plugin as it is on disk at one moment."""

    folder: Path
    """Where its modules are found."""
    modules: frozenset[str]
    """The names of its modules and packages."""
    location: Path
    """The file or folder in `plugin.path`, for people."""
    fingerprint: str
    """Another one as soon as a file changes."""
    version: str | None = None
    """The version of the distribution with the entry points."""
    entry_points: tuple[tuple[str, str, str], ...] = ()
    """(group, name, reference)."""

    def own_modules(self) -> Iterator[str]:
        """Yield the modules whose source names `connect.api`, in order: libraries beside them do not."""
        for name in sorted(self.modules):
            for source in (self.folder / f"{name}.py", self.folder / name / "__init__.py"):
                try:
                    if b"connect.api" in source.read_bytes():
                        yield name
                except OSError:
                    continue


def plugin_folders(entry: Path) -> Iterator[PluginFolder]:
    """Yield the plugins in an entry of `plugin.path`. Raises OSError if it cannot be read."""
    children = sorted(child for child in entry.iterdir() if not child.name.startswith((".", "_")))
    if any(child.suffix == ".dist-info" for child in children):
        yield _folder(entry, entry)
        return
    for child in children:
        if child.is_file() and child.suffix == ".py":
            yield _made(entry, [child.stem], child)
        elif (child / "__init__.py").is_file():
            yield _made(entry, [child.name], child)
        elif child.is_dir():
            site = next(iter(sorted(child.glob("lib/python3*/site-packages"))), child)
            plugin = _folder(site, child)
            if plugin.modules:
                yield plugin


def _folder(site: Path, location: Path) -> PluginFolder:
    """Return the plugin that consists of everything in a folder."""
    modules = {
        child.name.partition(".")[0]
        for child in site.iterdir()
        if child.suffix in (".py", ".so") or (child.is_dir() and child.name.isidentifier())
    }
    points, version = [], None
    for distribution in distributions(path=[str(site)]):
        own = [p for p in distribution.entry_points if p.group.startswith("millstream.")]
        if own:
            version = distribution.version
            points += [(p.group, p.name, p.value) for p in own]
    return _made(site, modules - {"__pycache__"}, location, version, tuple(sorted(points)))


def _made(
    folder: Path,
    modules: Iterable[str],
    location: Path,
    version: str | None = None,
    entry_points: tuple[tuple[str, str, str], ...] = (),
) -> PluginFolder:
    names = frozenset(modules)
    return PluginFolder(folder, names, location, _fingerprint(folder, names), version, entry_points)


def _fingerprint(folder: Path, modules: frozenset[str]) -> str:
    digest = hashlib.sha256(str(folder).encode())
    for number, path in enumerate(_files(folder, modules)):
        if number == _FILES_MAX:
            break
        try:
            stat = path.stat()
        except OSError:
            continue
        digest.update(f"{path}\0{stat.st_mtime_ns}\0{stat.st_size}\0{stat.st_ino}\n".encode(errors="replace"))
    return digest.hexdigest()[:12]


def _files(folder: Path, modules: frozenset[str]) -> Iterator[Path]:
    for child in sorted(folder.iterdir()):
        if child.is_file() and child.name.partition(".")[0] in modules:
            yield child
        elif child.is_dir() and (child.name in modules or child.suffix == ".dist-info"):
            for parent, folders, files in os.walk(child):
                folders[:] = sorted(each for each in folders if each != "__pycache__")
                yield from (Path(parent, name) for name in sorted(files))
