"""The state folder of one application: a lock, and a folder per task.

<state_dir>/<application id>/.lock
                             0_3/rocksdb/<store>/
                             global/rocksdb/<store>/
                             .deleted-0_4-1700000000000/
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import IO

from streams.errors import StateError, StateFolderLocked
from streams.runtime.task import TaskId

_TASK = re.compile(r"\d+_\d+")
_ASIDE = ".deleted-"


class StateFolder:
    """Locked from creation to `close`. StateFolderLocked: by another process; StateError: no such folder."""

    def __init__(self, state_dir: str, application_id: str) -> None:
        self.path = Path(state_dir) / application_id
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] = open(self.path / ".lock", "w")  # noqa: SIM115 - held until close
        except OSError as error:
            raise StateError(f"state.dir {state_dir} cannot be used: {error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise StateFolderLocked(
                f"{self.path} is in use by another process; give this one its own state_dir"
            ) from None

    def task(self, id: TaskId) -> Path:
        """Where a task's stores are."""
        return self.path / str(id) / "rocksdb"

    @property
    def global_stores(self) -> Path:
        """Where the stores of global tables are."""
        return self.path / "global"

    def stored_tasks(self) -> list[TaskId]:
        """Tasks that have left state here."""
        return sorted(TaskId.parse(each.name) for each in self.path.iterdir() if _TASK.fullmatch(each.name))

    def touch(self, id: TaskId) -> None:
        """Note that the task's state is in use now; what has no state is left alone."""
        with suppress(OSError):
            os.utime(self.path / str(id))

    def set_aside(self, running: Collection[TaskId], idle_ms: int, now: int) -> list[TaskId]:
        """Rename the folders of tasks that are not ``running`` and were not touched for ``idle_ms``.

        Nobody finds them any more; `delete_set_aside` takes its time.
        """
        found = []
        for id in self.stored_tasks():
            folder = self.path / str(id)
            if id not in running and now - folder.stat().st_mtime_ns // 1_000_000 > idle_ms:
                folder.rename(self.path / f"{_ASIDE}{id}-{now}")
                found.append(id)
        return found

    def delete_set_aside(self) -> None:
        """Delete what was set aside, by an earlier process too."""
        for each in self.path.glob(f"{_ASIDE}*"):
            shutil.rmtree(each)

    def close(self) -> None:
        """Give the lock back."""
        self._lock.close()
