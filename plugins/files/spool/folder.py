"""The folder of the spool source: which files are there to be read, in their order."""

from __future__ import annotations

import heapq
import logging
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from connect.api import RetriableError
from plugins.files.spool.config import SpoolSourceConfig

FILES_MAX = 10_000
"""How many files one look at the folder returns; the next look returns the others."""
_DEPTH_MAX = 64
_log = logging.getLogger(__name__)


class Entry(NamedTuple):
    """A file in the folder, its name below the folder, and its status when it was looked at."""

    path: Path
    name: str
    status: os.stat_result


class SpoolFolder:
    """The files of the folder that are one task's: those whose names' hash modulo `count` is `index`."""

    def __init__(
        self,
        config: SpoolSourceConfig,
        index: int = 0,
        count: int = 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.root = Path(config.input_path)
        self._config = config
        self._pattern = re.compile(config.input_file_pattern)
        self._index, self._count = index, count
        self._clock = clock
        self._warned: set[str] = set()

    def files(self, is_wanted: Callable[[Entry], bool]) -> list[Entry]:
        """Return the files to be read now, at most FILES_MAX of them.

        Raises RetriableError if the folder cannot be looked through, as one that is not mounted.
        """
        latest = self._clock() - self._config.file_minimum_age_ms / 1000
        try:
            ready = (f for f in self._walk(self.root, "", 0) if _changed_at(f) <= latest and is_wanted(f))
            return heapq.nsmallest(FILES_MAX, ready, key=self._key)
        except OSError as e:
            raise RetriableError(f"{self.root} cannot be looked through: {e.strerror or e}") from e

    def _walk(self, folder: Path, prefix: str, depth: int) -> Iterator[Entry]:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if self._config.input_path_walk_recursively and depth < _DEPTH_MAX:
                        yield from self._below(folder / entry.name, f"{name}/", depth + 1)
                elif self._pattern.fullmatch(entry.name) and self._is_ours(name):
                    yield from self._file(Path(entry.path), name)

    def _below(self, folder: Path, prefix: str, depth: int) -> Iterator[Entry]:
        try:
            yield from self._walk(folder, prefix, depth)
        except OSError as e:  # no permission, or gone in the meantime
            self._warn(prefix, e)

    def _file(self, path: Path, name: str) -> Iterator[Entry]:
        try:
            status = path.stat()
        except FileNotFoundError:  # another task or program took it, or a link leads nowhere
            return
        except OSError as e:  # links in a circle
            self._warn(name, e)
            return
        if stat.S_ISREG(status.st_mode):
            yield Entry(path, name, status)

    def _warn(self, name: str, error: OSError) -> None:
        """Log what is left out, once for each name."""
        if name not in self._warned and len(self._warned) < FILES_MAX:
            self._warned.add(name)
            _log.warning("%s in %s is left out: %s", os.fsencode(name), self.root, error)

    def _is_ours(self, name: str) -> bool:
        return zlib.crc32(os.fsencode(name)) % self._count == self._index

    def _key(self, entry: Entry) -> tuple[int, bytes]:
        name = os.fsencode(entry.name)
        match self._config.file_order:
            case "oldest":
                return entry.status.st_mtime_ns, name
            case "smallest":
                return entry.status.st_size, name
            case _:
                return 0, name


def _changed_at(entry: Entry) -> float:
    """Return when content or name changed; copying may set the first, nothing but the kernel the second."""
    return entry.status.st_ctime
