"""The state folder of one application: a lock, and a folder per task.

<state_dir>/<application id>/.lock
                             0_3/rocksdb/<store>/
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from streams.errors import StateError, StateFolderLocked
from streams.runtime.task import TaskId


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

    def stored_tasks(self) -> list[TaskId]:
        """Tasks that have left state here."""
        return sorted(TaskId.parse(each.name) for each in self.path.glob("*_*") if each.is_dir())

    def close(self) -> None:
        """Give the lock back."""
        self._lock.close()
