"""Who may write a partition's files: whoever has claimed it last.

    <path>/.claims/<topic>+<partition>/<pid>-<random>/              the folder of a claim
    <path>/.claims/<topic>+<partition>/<pid>-<random>/<name>.tmp    a file on its way to <path>/<topic>/<name>

- A file gets its name by a rename out of its writer's folder, once it is whole and on the disk.
- A claim makes a folder of its own and removes all others of the partition, with what is in them. It holds
  when it has seen none left.
- A writer whose folder is gone can neither make a file in it nor rename one out of it. So a worker that
  stood still (SIGSTOP, a suspended machine) while another took its place publishes nothing any more, wherever
  in its work it stopped. What it had published before that is as if it had been killed then.

A claim does not tell whether the claimant has the partition by right: one that stood still before its claim
takes the folder from the rightful owner. The worker asks the group behind every claim, before the first
record is put; the rightful owner is fenced, asks as well, and claims again.
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
"""Hidden, so that whoever reads the folders of files does not look into it."""
_VANISHED = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST)


class Claim:
    """The right to write one partition's files, until somebody else claims it."""

    def __init__(self, root: Path, tp: TopicPartition) -> None:
        """Claim `tp` in the sink's folder `root`; OSError if that cannot be written."""
        self.tp = tp
        self._folder = root / CLAIMS / f"{tp.topic}+{tp.partition}" / f"{os.getpid()}-{secrets.token_hex(8)}"
        self._make_folder()
        while others := self._others():
            for path in others:
                _remove(path)

    def temporary(self, name: str) -> Path:
        """Where to write the file that is to be called `name`."""
        return self._folder / f"{name}.tmp"

    def check(self) -> None:
        """PartitionsFenced if somebody else has claimed the partition."""
        if not self._folder.exists():
            raise PartitionsFenced(f"{self.tp} has been claimed by another task: {self._folder} is gone")

    def release(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):  # not empty: it holds another claim, or another partition
            self._folder.parent.rmdir()
            self._folder.parent.parent.rmdir()

    def _others(self) -> list[Path]:
        with suppress(FileNotFoundError):  # somebody else's claim has removed ours already
            return [path for path in self._folder.parent.iterdir() if path != self._folder]
        return []

    def _make_folder(self) -> None:
        while True:
            with suppress(FileNotFoundError):  # a release elsewhere removes the folders above
                self._folder.mkdir(parents=True)
                return


def _remove(path: Path) -> None:
    """Remove a claim's folder. Its writer may be making files in it: the caller looks whether it is gone."""
    try:
        shutil.rmtree(path)
    except OSError as e:
        if e.errno not in _VANISHED:
            raise
