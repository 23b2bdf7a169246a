"""Up to where a log may lack deletions and transaction markers that compaction has removed.

A replica that is behind that offset may hold a value whose deletion it will never be sent, or a transaction
whose marker it will never be sent. So the offset is on the disk before the first segment without them is.

    removal-offset-checkpoint, in the log's own folder:
        0               version
        1               number of lines
        336776 340011   removal offset, and up to where the log was compacted then

Whoever compacts without writing this file (Apache Kafka, an earlier release, a standalone broker) leaves a
`cleaner-offset-checkpoint` beyond the second number, or no file: then everything that was compacted counts.
"""

from __future__ import annotations

import threading
from pathlib import Path

from logd.storage.checkpoints import encode_lines, read_lines
from logd.storage.disk import Disk, write_atomically
from logd.storage.names import REMOVAL_OFFSET


class Removals:
    """`offset` is 1 + the highest offset of a deletion or marker removed from the log, 0 if there is none.

    It only rises. The owner raises it, then has `save` run in a thread, and only then does what it is
    raised for. `compacted_to` is up to where the log is compacted, as far as this broker has done it.
    """

    __slots__ = ("_saved", "_saving", "compacted_to", "offset")

    def __init__(self, offset: int = 0, compacted_to: int = -1) -> None:
        self.offset = offset
        self.compacted_to = compacted_to
        self._saved = b""
        self._saving = threading.Lock()

    @classmethod
    def read(cls, folder: Path, compacted_to: int, log_end_offset: int) -> Removals:
        """Read the file in the log's folder. Assume the most without one, or if others have compacted.

        `compacted_to` is the folder's `cleaner-offset-checkpoint` for the log, -1 if it has none.
        """
        try:
            rows = [(int(offset), int(known)) for offset, known in read_lines(folder / REMOVAL_OFFSET)]
        except ValueError:
            rows = []
        offset, known = rows[0] if rows else (0, -1)
        if compacted_to > known:
            return cls(max(offset, min(compacted_to, log_end_offset)), known)
        return cls(offset, known)

    @property
    def is_known(self) -> bool:
        """Return True if there is something to keep: this log, or its origin, was compacted."""
        return self.offset > 0 or self.compacted_to >= 0

    def encode(self) -> bytes:
        """The file's content."""
        return encode_lines([f"{self.offset} {self.compacted_to}"])

    def raise_to(self, offset: int) -> None:
        """The log lacks, or is going to lack, deletions or markers before `offset`."""
        self.offset = max(self.offset, offset)

    def save(self, disk: Disk, folder: Path) -> None:
        """Have what holds now on the disk. Blocks. May raise OSError."""
        with self._saving:
            data = self.encode()
            if data != self._saved:
                write_atomically(disk, folder / REMOVAL_OFFSET, data)
                self._saved = data
