"""The offset before which compaction may have removed deletions and transaction markers from a log.

A replica that ends before that offset may lack a deletion or a marker that it will never receive. So the
offset is saved before the first segment without them.

    removal-offset-checkpoint, in the log's own directory:
        0               version
        1               number of lines
        336776 340011   removal offset, and the offset up to which the log was compacted then

Apache Kafka, an earlier release and a standalone broker compact without writing this file. Then the offset in
`cleaner-offset-checkpoint` is larger than the second number, or there is no file. In that case all deletions
of the compacted part are assumed to be removed.
"""

from __future__ import annotations

import threading
from pathlib import Path

from logd.storage.checkpoints import encode_lines, read_lines
from logd.storage.disk import Disk, write_atomically
from logd.storage.names import REMOVAL_OFFSET


class Removals:
    """The removal offset: 1 + the highest offset of a deletion or marker removed from the log, 0 if none.

    It only rises. The owner raises it, then runs `save` in a thread, and only then removes the records.
    `compacted_to` is the offset up to which this broker has compacted the log.
    """

    __slots__ = ("_saved", "_saving", "compacted_to", "offset")

    def __init__(self, offset: int = 0, compacted_to: int = -1) -> None:
        self.offset = offset
        self.compacted_to = compacted_to
        self._saved = b""
        self._saving = threading.Lock()

    @classmethod
    def read(cls, directory: Path, compacted_to: int, log_end_offset: int) -> Removals:
        """Read the file in the log's directory; without one, or if others have compacted, assume that all is
        removed.

        `compacted_to` is the log's offset in `cleaner-offset-checkpoint`, -1 if there is none.
        """
        try:
            rows = [(int(offset), int(end)) for offset, end in read_lines(directory / REMOVAL_OFFSET)]
        except ValueError:
            rows = []
        offset, saved_to = rows[0] if rows else (0, -1)
        if compacted_to > saved_to:
            return cls(max(offset, min(compacted_to, log_end_offset)), saved_to)
        return cls(offset, saved_to)

    @property
    def is_known(self) -> bool:
        """True if there is something to save: this log, or the log that it was copied from, was compacted."""
        return self.offset > 0 or self.compacted_to >= 0

    def encode(self) -> bytes:
        """Return the file's content."""
        return encode_lines([f"{self.offset} {self.compacted_to}"])

    def raise_to(self, offset: int) -> None:
        """Raise the offset: deletions or markers before `offset` are or will be removed."""
        self.offset = max(self.offset, offset)

    def save(self, disk: Disk, directory: Path) -> None:
        """Save the current values. Blocks until they are on the disk. May raise OSError."""
        with self._saving:
            data = self.encode()
            if data != self._saved:
                write_atomically(disk, directory / REMOVAL_OFFSET, data)
                self._saved = data
