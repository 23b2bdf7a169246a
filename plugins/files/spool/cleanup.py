"""Moves or deletes files that are done, or leaves them where they are."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from connect.api import ConnectError
from plugins.files.spool.config import SpoolSourceConfig
from plugins.files.spool.offset import FileOffset


def clean_up(path: Path, name: str, offset: FileOffset, config: SpoolSourceConfig) -> None:
    """Move or delete a file that is done or has failed, unless its name is another file's by now.

    Raises ConnectError if that fails: the file would stay for ever.
    """
    if config.cleanup_policy == "none":
        return
    try:
        if not offset.identity.has_status(os.stat(path)):
            return
        folder = config.error_path if offset.failed else config.finished_path
        if folder and (offset.failed or config.cleanup_policy == "move"):
            _move(path, Path(folder) / name)
        elif not offset.failed:
            path.unlink()
    except FileNotFoundError:
        return
    except OSError as e:
        raise ConnectError(
            f"{path} was read and cannot be moved away or deleted: {e}; see cleanup.policy"
        ) from e


def _move(path: Path, target: Path) -> None:
    """Move a file, and overwrite none: a name that exists gets a number."""
    target.parent.mkdir(parents=True, exist_ok=True)
    free, number = target, 0
    while os.path.lexists(free):
        number += 1
        free = target.with_name(f"{target.name}.{number}")
    try:
        path.rename(free)
    except OSError as e:
        if e.errno != errno.EXDEV:
            raise
        part = free.with_name(f".{free.name}.part")  # another file system: the name appears with the whole
        shutil.copy2(path, part)
        part.rename(free)
        path.unlink()
