"""Files that a task knows by identity, so that a renamed file is not read again under its new name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plugins.files.identity import Identity

_FINISHED_MAX = 10_000
_Place = tuple[int, int]


class KnownFiles:
    """Which reader is on which file, and where the reading of rotated files ended."""

    def __init__(self) -> None:
        self._readers: dict[_Place, tuple[Path, Identity]] = {}
        self._finished: dict[_Place, tuple[Identity, Mapping[str, Any]]] = {}

    def reads(self, path: Path, identity: Identity) -> None:
        """Note that the reader of `path` is on the file."""
        self._readers[identity.place] = path, identity

    def finished(self, path: Path, identity: Identity, offset: Mapping[str, Any]) -> None:
        """Note that the reader of `path` has read the file to its end, `offset`, and goes on to another."""
        self.forget(path, identity)
        self._finished[identity.place] = identity, offset
        if len(self._finished) > _FINISHED_MAX:
            del self._finished[next(iter(self._finished))]

    def forget(self, path: Path, identity: Identity | None) -> None:
        """Forget that the reader of `path` is on the file."""
        if identity is not None and self._readers.get(identity.place, (None,))[0] == path:
            del self._readers[identity.place]

    def is_read_elsewhere(self, path: Path) -> bool:
        """Return True if the file at `path` was renamed, and the reader of its old name is still on it."""
        other, identity = self._readers.get(_place(path), (path, None))
        return other != path and identity is not None and identity.is_of(path)

    def end_of(self, path: Path) -> Mapping[str, Any] | None:
        """Return where the reading of the file at `path` ended under its old name, or None."""
        identity, offset = self._finished.get(_place(path), (None, None))
        return offset if identity is not None and identity.is_of(path) else None


def _place(path: Path) -> _Place:
    try:
        status = os.stat(path)
    except OSError:
        return (-1, -1)
    return status.st_dev, status.st_ino
