"""Leftovers: files of an earlier attempt whose records are delivered again.

An attempt that ended before its commit leaves files that begin at or behind the committed offset. The next
attempt overwrites those that it cuts at the same offsets. Compaction and commits in its gaps may change the
cuts: then the earlier file is removed before the file with the same records is written.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from connect.api import TopicPartition
from plugins.files.claims import CLAIMS, Claim

_NAME = re.compile(r"([^+]+)\+(\d+)\+(\d{20})((?:\+[^+]+)?\.\w+)")


class _File(NamedTuple):
    begin: int
    """The offset in its name."""
    path: Path
    name_end: str


class Leftovers:
    """The files of some partitions in the folders under `root`, as they are at this moment."""

    def __init__(self, root: Path, partitions: Collection[TopicPartition]) -> None:
        """Look for files. Raises OSError if a folder cannot be read."""
        partitions = frozenset(partitions)
        self._unsorted: defaultdict[TopicPartition, list[_File]] = defaultdict(list)
        self._files: dict[TopicPartition, deque[_File]] = {}
        """By the offset at which they begin, for partitions whose position is known."""
        for folder in root.iterdir():
            if folder.name == CLAIMS or not folder.is_dir():
                continue
            for path in folder.iterdir():
                if (match := _NAME.fullmatch(path.name)) is not None:
                    tp = TopicPartition(match[1], int(match[2]))
                    if tp in partitions:
                        self._unsorted[tp].append(_File(int(match[3]), path, match[4]))

    def begin(self, tp: TopicPartition, position: int, name_end: str) -> None:
        """Take note of a partition's first position: files that begin before it are committed, and stay.

        `name_end` is the part of the names behind the offset. Files with another end have another topic id,
        and stay as well. Later calls for the partition do nothing.
        """
        if tp not in self._files:
            files = self._unsorted.pop(tp, [])
            self._files[tp] = deque(
                sorted(each for each in files if each.begin >= position and each.name_end == name_end)
            )

    def remove(self, claim: Claim, end: int, keep: Path | None = None) -> None:
        """Remove the files of a claim's partition that begin before `end`.

        The file `keep` stays: it is about to be replaced. Raises OSError if a file cannot be removed, and
        PartitionsFenced if another task has claimed the partition.
        """
        files = self._files.get(claim.tp, deque())
        while files and files[0].begin < end:
            path = files[0].path
            if path != keep:
                removed = claim.temporary(path.name)
                # By a rename into the claim's folder: who has no claim any more removes nothing.
                with suppress(FileNotFoundError):
                    path.replace(removed)
                claim.check()
                removed.unlink(missing_ok=True)
            files.popleft()
