"""The producer snapshots of one log: `<offset>.snapshot` holds the state before the record at that offset.

One is taken when a segment is rolled and at a clean stop, so that opening the log replays little. A torn one
is found out by its CRC and the one before it serves.
"""

from __future__ import annotations

import logging
from pathlib import Path

from logd.storage.disk import Disk, File
from logd.storage.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, offset_name
from logd.storage.producers import ProducerState

logger = logging.getLogger(__name__)


class Snapshots:
    """The snapshot files in one log's folder, by offset. Methods may raise OSError."""

    __slots__ = ("_disk", "folder", "offsets")

    def __init__(self, disk: Disk, folder: Path, offsets: list[int]) -> None:
        self._disk = disk
        self.folder = folder
        self.offsets = sorted(offsets)

    @property
    def latest(self) -> int:
        """The newest snapshot's offset, -1 if there is none."""
        return self.offsets[-1] if self.offsets else -1

    def path(self, offset: int) -> Path:
        """The file of the snapshot at `offset`."""
        return self.folder / offset_name(offset, SNAPSHOT_SUFFIX)

    def take(self, offset: int, state: ProducerState) -> File:
        """Write the state before `offset`; the file is returned for `sync` and is the caller's to close."""
        file = self._disk.open(self.path(offset))
        data = state.encode()
        file.truncate(len(data))
        file.write(0, [data])
        if offset > self.latest:
            self.offsets.append(offset)
        return file

    def newest(self, upto: int) -> tuple[int, ProducerState]:
        """(offset, state) of the newest whole snapshot at or before `upto`; (-1, empty) without one.

        Newer and damaged ones are removed.
        """
        while self.offsets:
            offset = self.offsets[-1]
            if offset <= upto:
                try:
                    return offset, ProducerState.decode(self.path(offset).read_bytes())
                except ValueError as error:
                    logger.warning("ignoring %s: %s", self.path(offset), error)
            self._disk.unlink(self.path(offset))
            self.offsets.pop()
        return -1, ProducerState()

    def drop_before(self, offset: int) -> list[Path]:
        """Take out the snapshots before `offset`; returns their files, renamed, to be unlinked."""
        renamed = []
        while self.offsets and self.offsets[0] < offset:
            path = self.path(self.offsets.pop(0))
            target = path.with_name(path.name + DELETED_SUFFIX)
            self._disk.rename(path, target)
            renamed.append(target)
        return renamed
