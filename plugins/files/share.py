"""Which files are whose: paths and patterns, shared out over tasks.

Where reading ends with the files there are, or only paths are named, the plan lists each task's files.
Patterns that are watched match more and more: there each task looks for itself and takes what a hash of the
path gives it, so that a new file is read by a running task, and none has to be started anew for it.
"""

from __future__ import annotations

import glob
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from plugins.files.config import FilesSourceConfig

_FILES = "task.files"
_INDEX = "task.index"
_COUNT = "task.count"


def matches(patterns: Sequence[str]) -> list[str]:
    """The files that paths and patterns name now, in their order."""
    found: dict[str, None] = {}
    for pattern in patterns:
        paths = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]
        found.update(dict.fromkeys(path for path in paths if not Path(path).is_dir()))
    return list(found)


def plan(config: FilesSourceConfig, max_tasks: int) -> list[dict[str, str]]:
    """What each task's config says of its share."""
    if is_watched(config):
        return [{_INDEX: str(i), _COUNT: str(max_tasks)} for i in range(max_tasks)]
    paths = [config.file] if config.file else matches(config.files)
    count = max(1, min(max_tasks, len(paths)))
    return [{_FILES: json.dumps(paths[i::count])} for i in range(count)]


def is_watched(config: FilesSourceConfig) -> bool:
    """Whether new files may come."""
    return not config.stop_at_eof and any(map(glob.has_magic, config.files))


class Share:
    """One task's files."""

    def __init__(self, config: FilesSourceConfig, task: Mapping[str, str]) -> None:
        self.is_watched = is_watched(config)
        self._patterns = config.files
        self._index, self._count = int(task.get(_INDEX, 0)), int(task.get(_COUNT, 1))
        self._listed: list[str] = json.loads(task.get(_FILES) or json.dumps([config.file]))

    def paths(self) -> list[str]:
        """The task's files now."""
        return [p for p in matches(self._patterns) if self._is_ours(p)] if self.is_watched else self._listed

    def _is_ours(self, path: str) -> bool:
        return zlib.crc32(os.fsencode(path)) % self._count == self._index
