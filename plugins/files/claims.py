"""Claims of partitions: only the task with the latest claim may write a partition's files.

    <path>/.claims/<topic>+<partition>/<pid>-<random>/              the folder of a claim
    <path>/.claims/<topic>+<partition>/<pid>-<random>/<name>.tmp    a file on its way to <path>/<topic>/<name>

- A file gets its name by a rename out of its writer's folder, once it is complete and synced.
- A claim creates a folder of its own and removes all others of the partition with their files. The claim is
complete
  when no other folder is left.
- A writer whose folder was removed can neither create a file in it nor rename one out of it. So a worker that
was
  suspended (SIGSTOP, a suspended machine) while another task took its partition publishes nothing more,
  wherever it stopped. Its earlier files are the same as if it had been killed at that point.

A claim does not prove that its task owns the partition. A task that was suspended before its claim removes
the folder of the owner. So the worker asks the group after every claim, before the first put. The owner is
fenced, asks the group as well, and claims again.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from connect.api import PartitionsFenced, TopicPartition

CLAIMS = ".claims"
"""The folder of claims; hidden, so that readers of the topics' folders skip it."""
_VANISHED = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST)


class Claim:
    """The right to write one partition's files, until another task claims the partition."""

    def __init__(self, root: Path, tp: TopicPartition) -> None:
        """Claim `tp` in the sink's folder `root`. Raises OSError if the folder is not writable."""
        self.tp = tp
        self._folder = root / CLAIMS / f"{tp.topic}+{tp.partition}" / f"{os.getpid()}-{secrets.token_hex(8)}"
        self._make_folder()
        while others := self._others():
            for path in others:
                _remove(path)

    def temporary(self, name: str) -> Path:
        """Return the path of the temporary file for the file `name`."""
        return self._folder / f"{name}.tmp"

    def check(self) -> None:
        """Raise PartitionsFenced if another task has claimed the partition."""
        if not self._folder.exists():
            raise PartitionsFenced(f"{self.tp} has been claimed by another task: {self._folder} is gone")

    def release(self) -> None:
        """Remove the claim's folder, and its parents if they are empty."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):  # not empty: it holds another claim, or another partition
            self._folder.parent.rmdir()
            self._folder.parent.parent.rmdir()

    def _others(self) -> list[Path]:
        with suppress(FileNotFoundError):  # another task's claim has removed ours already
            return [path for path in self._folder.parent.iterdir() if path != self._folder]
        return []

    def _make_folder(self) -> None:
        while True:
            with suppress(FileNotFoundError):  # a release elsewhere removes the folders above
                self._folder.mkdir(parents=True)
                return


def _remove(path: Path) -> None:
    """Remove a claim's folder. Its writer may create files meanwhile: the caller checks that it is gone."""
    try:
        shutil.rmtree(path)
    except OSError as e:
        if e.errno not in _VANISHED:
            raise
