"""Leftovers: files of an earlier attempt whose records are delivered again.

An attempt that ended before its commit leaves files that begin at or behind the committed offset. The next
attempt overwrites those that it cuts at the same offsets. Compaction and commits in its gaps may change the
cuts: then the earlier file is removed before the file with the same records is written.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from connect.api import TopicPartition
from plugins.files.claims import CLAIMS, Claim

_NAME = re.compile(r"([^+]+)\+(\d+)\+(\d{20})(\+[^+]+)?\.(\w+)")


class Leftovers:
    """The files of some partitions in the folders under `root`, as they are at this moment."""

    def __init__(self, root: Path, partitions: Collection[TopicPartition]) -> None:
        """Look for files. Raises OSError if a folder cannot be read."""
        partitions = frozenset(partitions)
        self._files: defaultdict[TopicPartition, dict[Path, int]] = defaultdict(dict)
        self._positioned: set[TopicPartition] = set()
        for folder in root.iterdir():
            if folder.name == CLAIMS or not folder.is_dir():
                continue
            for path in folder.iterdir():
                if (match := _NAME.fullmatch(path.name)) is not None:
                    tp = TopicPartition(match[1], int(match[2]))
                    if tp in partitions:
                        self._files[tp][path] = int(match[3])

    def begin(self, tp: TopicPartition, position: int, name_end: str) -> None:
        """Keep the files that begin from `position` on and whose names end so, at the first call.

        Files before it are committed. Files with another topic id belong to an earlier topic of this name.
        """
        if tp not in self._positioned:
            self._positioned.add(tp)
            files = self._files.pop(tp, {})
            if mine := {p: n for p, n in files.items() if n >= position and _ends(p.name, name_end)}:
                self._files[tp] = mine

    def note_written(self, tp: TopicPartition, path: Path) -> None:
        """Forget a file that this attempt has written itself."""
        if tp in self._files:
            self._files[tp].pop(path, None)

    def remove(self, claim: Claim, end: int, keep: Path | None = None) -> None:
        """Remove the files of a claim's partition that begin before `end`, all but `keep`.

        Raises OSError if the partition has been claimed by another task.
        """
        tp = claim.tp
        if tp not in self._positioned:
            return
        for path in [path for path, begin in self._files.get(tp, {}).items() if begin < end and path != keep]:
            removed = claim.temporary(path.name)
            # By a rename into the claim's folder: without a claim nothing can be removed.
            with suppress(FileNotFoundError):
                path.replace(removed)
            claim.check()
            removed.unlink(missing_ok=True)
            del self._files[tp][path]


def _ends(name: str, name_end: str) -> bool:
    """Return True if the part of a name behind its offset is `name_end`."""
    match = _NAME.fullmatch(name)
    return match is not None and f"{match[4] or ''}.{match[5]}" == name_end
