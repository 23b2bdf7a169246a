"""The producer snapshots of one log: `<offset>.snapshot` holds the state before the record at that offset.

One is taken when a segment is rolled, by the flush of a log that has grown, and at a clean stop, so that
opening the log replays little. A torn one is found out by its CRC and the one before it serves.
"""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from collections.abc import Collection
from pathlib import Path

from logd.storage.disk import Disk, File
from logd.storage.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, offset_name
from logd.storage.producers.snapshot import decode_snapshot, encode_snapshot
from logd.storage.producers.state import ProducerState

logger = logging.getLogger(__name__)


class Snapshots:
    """The snapshot files in one log's folder, by offset. Methods may raise OSError.

    `unsynced` are the offsets of those not forced to the disk yet.
    """

    __slots__ = ("_disk", "folder", "offsets", "unsynced")

    def __init__(self, disk: Disk, folder: Path, offsets: list[int]) -> None:
        self._disk = disk
        self.folder = folder
        self.offsets = sorted(offsets)
        self.unsynced: set[int] = set()

    @property
    def latest(self) -> int:
        """The newest snapshot's offset, -1 if there is none."""
        return self.offsets[-1] if self.offsets else -1

    def path(self, offset: int) -> Path:
        """The file of the snapshot at `offset`."""
        return self.folder / offset_name(offset, SNAPSHOT_SUFFIX)

    def relocate(self, disk: Disk, folder: Path, unsynced: set[int]) -> None:
        """The files are in another folder now; see `LogFlusher.relocate`."""
        self._disk, self.folder, self.unsynced = disk, folder, unsynced

    def take(self, offset: int, state: ProducerState) -> None:
        """Write the state before `offset`; the next flush forces it to the disk."""
        file = self._disk.open(self.path(offset))
        data = encode_snapshot(state)
        file.truncate(len(data))
        file.write(0, [data])
        file.close()
        if offset not in self.offsets:
            insort(self.offsets, offset)
        self.unsynced.add(offset)

    def start_sync(self) -> list[File]:
        """The unsynced files, to be synced and closed."""
        files = [self._disk.open(self.path(offset)) for offset in self.unsynced.intersection(self.offsets)]
        self.unsynced.clear()
        return files

    def newest(self, upto: int) -> tuple[int, ProducerState]:
        """(offset, state) of the newest whole snapshot at or before `upto`; (-1, empty) without one.

        Damaged ones met are removed.
        """
        for offset in reversed(self.offsets[: bisect_right(self.offsets, upto)]):
            try:
                return offset, decode_snapshot(self.path(offset).read_bytes())
            except ValueError as error:
                logger.warning("ignoring %s: %s", self.path(offset), error)
            self._disk.unlink(self.path(offset))
            self.offsets.remove(offset)
        return -1, ProducerState()

    def drop_after(self, end_offset: int) -> None:
        """Remove the snapshots of what the log no longer has, or will have anew."""
        while self.offsets and self.offsets[-1] > end_offset:
            self._disk.unlink(self.path(self.offsets.pop()))

    def drop_between(self, kept: Collection[int]) -> list[Path]:
        """Take out all snapshots but the latest and those at the offsets `kept`; files, to be unlinked."""
        dropped = [offset for offset in self.offsets[:-1] if offset not in kept]
        self.offsets = [offset for offset in self.offsets if offset not in dropped]
        return [self.path(offset) for offset in dropped]

    def drop_before(self, offset: int) -> list[tuple[Path, Path]]:
        """Take out the snapshots before `offset`; returns how to rename their files away."""
        renames = []
        while self.offsets and self.offsets[0] < offset:
            path = self.path(self.offsets.pop(0))
            renames.append((path, path.with_name(path.name + DELETED_SUFFIX)))
        return renames
