"""The producer snapshots of one log: `<offset>.snapshot` holds the state before the record at that offset.

A snapshot is taken when a segment is rolled, by the flush of a log that has grown, and at a clean stop. So
opening the log replays little. A new snapshot is kept in memory; the next flush writes it, in its thread,
since there may be many producers. A damaged one is detected by its CRC; the one before is used instead.
"""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from logd.storage.disk import Disk, File
from logd.storage.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, offset_name
from logd.storage.producers.snapshot import decode_snapshot, encode_snapshot
from logd.storage.producers.state import ProducerState

logger = logging.getLogger(__name__)


class SnapshotWrite:
    """The write of a snapshot, with its sync; without `rows` the file is already written."""

    __slots__ = ("_file", "_rows", "offset")

    def __init__(self, offset: int, file: File, rows: Sequence[bytes] | None) -> None:
        self.offset = offset
        self._file = file
        self._rows = rows

    def run(self) -> None:
        """Write and sync the file, and close it. Blocks. May raise OSError."""
        if self._rows is not None:
            data = encode_snapshot(self._rows)
            self._file.truncate(len(data))
            self._file.write(0, [data])
        self._file.sync()
        self._file.close()


class Snapshots:
    """The snapshots of one log, by offset. Methods may raise OSError.

    `unsynced` are the offsets of those that the next flush has to write or sync. Snapshots that may not be in
    their file yet stay in `_unwritten`.
    """

    __slots__ = ("_disk", "_unwritten", "directory", "offsets", "unsynced")

    def __init__(self, disk: Disk, directory: Path, offsets: list[int]) -> None:
        self._disk = disk
        self.directory = directory
        self.offsets = sorted(offsets)
        self.unsynced: set[int] = set()
        self._unwritten: dict[int, Sequence[bytes]] = {}

    @property
    def latest(self) -> int:
        """The newest snapshot's offset, -1 if there is none."""
        return self.offsets[-1] if self.offsets else -1

    def path(self, offset: int) -> Path:
        """Return the path of the snapshot at `offset`."""
        return self.directory / offset_name(offset, SNAPSHOT_SUFFIX)

    def relocate(self, disk: Disk, directory: Path, unsynced: set[int]) -> None:
        """Use the files in another directory; see `Log.relocate`."""
        self._disk, self.directory, self.unsynced = disk, directory, {*unsynced, *self._unwritten}

    def take(self, offset: int, state: ProducerState) -> None:
        """Take a snapshot of the state before `offset`; the next flush writes it."""
        self._unwritten[offset] = state.rows()
        if offset not in self.offsets:
            insort(self.offsets, offset)
        self.unsynced.add(offset)

    def start_sync(self) -> list[SnapshotWrite]:
        """Return the writes for the next flush; call `synced` after them."""
        writes = self.writes(self.unsynced)
        self.unsynced.clear()
        return writes

    def writes(self, offsets: Iterable[int]) -> list[SnapshotWrite]:
        """Return the writes that sync the snapshots at these offsets, as far as they exist."""
        return [
            SnapshotWrite(offset, self._disk.open(self.path(offset)), self._unwritten.get(offset))
            for offset in self.unsynced.union(self._unwritten).intersection(self.offsets, offsets)
        ]

    def synced(self, writes: Iterable[SnapshotWrite]) -> None:
        """Record that these writes were made."""
        for write in writes:
            if write.offset not in self.unsynced:  # else the snapshot was taken again meanwhile
                self._unwritten.pop(write.offset, None)

    def newest(self, upto: int) -> tuple[int, ProducerState]:
        """Return (offset, state) of the newest whole snapshot at or before `upto`; (-1, empty) without one.

        Damaged ones that it reads are removed.
        """
        for offset in reversed(self.offsets[: bisect_right(self.offsets, upto)]):
            try:
                if (rows := self._unwritten.get(offset)) is not None:
                    return offset, decode_snapshot(encode_snapshot(rows))
                return offset, decode_snapshot(self.path(offset).read_bytes())
            except ValueError as error:
                logger.warning("ignoring %s: %s", self.path(offset), error)
            self._disk.unlink(self.path(offset))
            self.offsets.remove(offset)
        return -1, ProducerState()

    def drop_after(self, end_offset: int) -> None:
        """Remove the snapshots after `end_offset`, where the log now ends."""
        while self.offsets and self.offsets[-1] > end_offset:
            offset = self.offsets.pop()
            self._unwritten.pop(offset, None)
            self._disk.unlink(self.path(offset))

    def drop_between(self, needed: Collection[int]) -> list[Path]:
        """Remove all snapshots but the latest and those at the offsets `needed`; return the files to
        unlink.
        """
        dropped = [offset for offset in self.offsets[:-1] if offset not in needed]
        self.offsets = [offset for offset in self.offsets if offset not in dropped]
        for offset in dropped:
            self._unwritten.pop(offset, None)
        return [self.path(offset) for offset in dropped]

    def drop_before(self, offset: int) -> list[tuple[Path, Path]]:
        """Remove the snapshots before `offset`; return how to rename their files away."""
        renames = []
        while self.offsets and self.offsets[0] < offset:
            path = self.path(dropped := self.offsets.pop(0))
            self._unwritten.pop(dropped, None)
            renames.append((path, path.with_name(path.name + DELETED_SUFFIX)))
        return renames
