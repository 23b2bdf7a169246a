"""Distributes the files of paths and patterns over tasks.

If reading ends with the existing files, or the config has only paths, the plan lists each task's files.
Watched patterns match more files over time. So each task looks for files itself and reads those that a hash
of the path assigns to it: running tasks read new files without a restart.
"""

from __future__ import annotations

import glob
import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from plugins.files.config import FilesSourceConfig

_FILES = "task.files"
_INDEX = "task.index"
_COUNT = "task.count"

_ROTATED = re.compile(r"(\.\d+|[.-]\d{4}-?\d\d-?\d\d|\.old)$", re.ASCII)
"""The suffixes that rotation appends to a name: a file's task is that of its old name, which may still read
it."""


def matches(patterns: Sequence[str]) -> list[str]:
    """Return the files that match paths and patterns now, in the order of these."""
    files: dict[str, None] = {}
    for pattern in patterns:
        paths = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]
        files.update(dict.fromkeys(path for path in paths if not Path(path).is_dir()))
    return list(files)


def plan(config: FilesSourceConfig, max_tasks: int) -> list[dict[str, str]]:
    """Return the keys of each task's config that determine its files."""
    if is_watched(config):
        return [{_INDEX: str(i), _COUNT: str(max_tasks)} for i in range(max_tasks)]
    paths = [config.file] if config.file else matches(config.files)
    count = max(1, min(max_tasks, len(paths)))
    return [{_FILES: json.dumps(paths[i::count])} for i in range(count)]


def is_watched(config: FilesSourceConfig) -> bool:
    """Return True if the patterns are watched for new files."""
    return not config.stop_at_eof and any(map(glob.has_magic, config.files))


class Share:
    """The files of one task."""

    def __init__(self, config: FilesSourceConfig, task: Mapping[str, str]) -> None:
        self.is_watched = is_watched(config)
        self._patterns = config.files
        self._index, self._count = int(task.get(_INDEX, 0)), int(task.get(_COUNT, 1))
        self._listed: list[str] = json.loads(task.get(_FILES) or json.dumps([config.file]))

    def paths(self) -> list[str]:
        """Return the paths of the files that this task reads at present."""
        return [p for p in matches(self._patterns) if self._is_ours(p)] if self.is_watched else self._listed

    def _is_ours(self, path: str) -> bool:
        return zlib.crc32(os.fsencode(_ROTATED.sub("", path))) % self._count == self._index
