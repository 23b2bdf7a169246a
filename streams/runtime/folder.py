"""The state folder of one application: a lock, and a folder per task.

<state_dir>/<application id>/.lock                 has the process's id
                             0_3/rocksdb/<store>/
                             0_3/.offsets          of its changelogs, by store, as JSON; not while it is open
                             global/rocksdb/<store>/
                             .deleted-0_4-1700000000000/
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from kafka_client.private_files import DIRECTORY_MODE
from streams.errors import StateError, StateFolderLocked
from streams.runtime.task_id import TaskId

_TASK = re.compile(r"\d+_\d+")
_ASIDE = ".deleted-"


class StateFolder:
    """The state folder, locked from creation to `close`.

    Raises StateFolderLocked if another process has the lock; StateError if the folder cannot be used.
    """

    def __init__(self, state_dir: str, application_id: str) -> None:
        self.path = Path(state_dir) / application_id
        try:
            self.path.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            self.path.mkdir(DIRECTORY_MODE, exist_ok=True)
            with suppress(OSError):  # Another user may own it. Then its permissions are that user's to set.
                self.path.chmod(DIRECTORY_MODE)
            self._lock: IO[str] = open(self.path / ".lock", "a+")  # noqa: SIM115 - held until close
        except OSError as error:
            raise StateError(f"state.dir {state_dir} cannot be used: {error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            owner = self._lock.read(20).strip()
            self._lock.close()
            raise StateFolderLocked(
                f"{self.path} is in use by another process{owner and f', {owner}'}: end that one, or give "
                "this one its own state_dir"
            ) from None
        with suppress(OSError):  # The disk may be full, and the id is only for people.
            self._lock.truncate(0)
            self._lock.write(f"{os.getpid()}\n")
            self._lock.flush()

    def task(self, id: TaskId) -> Path:
        """Return the folder of a task's stores."""
        return self.path / str(id) / "rocksdb"

    def made_for(self, id: TaskId) -> Path:
        """Create a task's folder if necessary and return it."""
        folder = self.path / str(id)
        folder.mkdir(DIRECTORY_MODE, exist_ok=True)
        return folder

    @property
    def global_stores(self) -> Path:
        """The folder of the stores of global tables."""
        return self.path / "global"

    def stored_tasks(self) -> list[TaskId]:
        """Return the tasks with state in this folder."""
        return sorted(TaskId.parse(each.name) for each in self.path.iterdir() if _TASK.fullmatch(each.name))

    def opened(self, id: TaskId) -> None:
        """Delete the stored offsets of a task, before its stores are opened and change."""
        with suppress(OSError):
            self._offsets(id).unlink()

    def released(self, id: TaskId, offsets: Mapping[str, int]) -> None:
        """Write the changelog offset of each store of a closed task, and note the time of closing.

        Does nothing if the task has no folder.
        """
        self.noted(id, offsets)
        with suppress(OSError):
            os.utime(self.path / str(id))

    def noted(self, id: TaskId, offsets: Mapping[str, int]) -> None:
        """Write the changelog offset of each store of a task that did not run."""
        with suppress(OSError):
            self._offsets(id).write_bytes(msgspec.json.encode(offsets))

    def offsets(self, id: TaskId) -> dict[str, int] | None:
        """Return the offsets that `released` wrote; None if the process was killed, or the task is open."""
        try:
            return msgspec.json.decode(self._offsets(id).read_bytes(), type=dict[str, int])
        except (OSError, msgspec.DecodeError):
            return None

    def _offsets(self, id: TaskId) -> Path:
        return self.path / str(id) / ".offsets"

    def set_aside(self, running: Collection[TaskId], idle_ms: int, now: int) -> list[TaskId]:
        """Rename the folders of tasks that are not ``running`` and were not touched for ``idle_ms``.

        Returns the tasks. `delete_set_aside` deletes the folders, which may take long.
        """
        idle = []
        for id in self.stored_tasks():
            folder = self.path / str(id)
            if id not in running and now - folder.stat().st_mtime_ns // 1_000_000 > idle_ms:
                folder.rename(self.path / f"{_ASIDE}{id}-{now}")
                idle.append(id)
        return idle

    def delete_set_aside(self) -> None:
        """Delete the folders that were set aside, also by earlier processes."""
        for each in self.path.glob(f"{_ASIDE}*"):
            shutil.rmtree(each)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()
