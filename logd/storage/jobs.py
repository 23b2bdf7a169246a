"""Jobs that may block: created by a log's owner, run in any thread.

They do not touch a log's state; the owner hands a finished `Flush` back to its log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from logd.storage.disk import remove_folder, write_atomically

if TYPE_CHECKING:
    from kafka_client.errors import KafkaError
    from logd.storage.disk import Disk, File
    from logd.storage.health import Health
    from logd.storage.producers.snapshots import SnapshotWrite

logger = logging.getLogger(__name__)


class DiskWrite(Protocol):
    """A write to the disk, with its sync."""

    def run(self) -> None:
        """Write and sync. Blocks. May raise OSError."""


class FileWrite(NamedTuple):
    """Bytes to write at a position of a file, which is then synced and closed."""

    file: File
    position: int
    data: bytes

    def run(self) -> None:
        """Write, sync and close the file; see `DiskWrite`."""
        if self.data:
            self.file.write(self.position, [self.data])
        self.file.sync()
        self.file.close()


class Saved(Protocol):
    """A segment whose indexes a flush has written."""

    def saved(self) -> None:
        """Record that the indexes are on the disk."""

    def unload(self) -> None:
        """Drop the indexes from memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushContents:
    """The files of one log that a flush writes and syncs.

    `files` are synced, and `writes` and `snapshots` made and synced. `epochs` is the leader epoch checkpoint
    to write, in one of the log's directories; None if the file is current. `segments` are those whose indexes
    are in `writes`; without segments the records are safe, but recovery has to read them. `obsolete` files
    are unlinked at the end.
    """

    files: Sequence[File]
    writes: Sequence[DiskWrite] = ()
    snapshots: Sequence[SnapshotWrite] = ()
    epochs: tuple[Path, bytes] | None = None
    segments: Sequence[Saved] = ()
    obsolete: Sequence[Path] = ()


class Flush:
    """The fsyncs of one log up to `end_offset`. Run it, then pass it to `LogFlusher.finish_flush`.

    `directories` are those whose names have changed. `turn` is the log's lock: a flush relies on the results
    of the previous one.
    """

    __slots__ = ("_contents", "_directories", "_disk", "_health", "_turn", "end_offset")

    def __init__(
        self,
        health: Health,
        disk: Disk,
        contents: FlushContents,
        *,
        directories: Sequence[Path],
        end_offset: int,
        turn: threading.Lock,
    ) -> None:
        self._health = health
        self._disk = disk
        self._contents = contents
        self._directories = directories
        self.end_offset = end_offset
        self._turn = turn

    @property
    def segments(self) -> Sequence[Saved]:
        """The segments whose indexes this flush writes."""
        return self._contents.segments

    @property
    def snapshots(self) -> Sequence[SnapshotWrite]:
        """The producer snapshots that this flush writes."""
        return self._contents.snapshots

    def is_of(self, health: Health) -> bool:
        """Return True if this flush is for a log in the directory of `health`."""
        return self._health is health

    def run(self) -> None:
        """Sync everything, after a running flush of the same log.

        Raises KafkaError(KAFKA_STORAGE_ERROR) if the disk fails; the directory is offline then.
        """
        with self._turn:
            self._run()

    def _run(self) -> None:
        if self._health.failure is not None:
            raise self._health.error()
        contents = self._contents
        try:
            for file in contents.files:
                file.sync()
            for write in (*contents.writes, *contents.snapshots):
                write.run()
            if contents.epochs is not None:
                write_atomically(self._disk, *contents.epochs, sync_name=False)
            for directory in self._directories:
                self._disk.sync_folder(directory)
            for path in contents.obsolete:
                self._disk.unlink(path)
        except FileNotFoundError:
            # The whole log was deleted meanwhile and its directory renamed: nothing is left to sync.
            logger.debug("a log went away while it was flushed")
        except OSError as error:
            raise self._health.fail("flushing", error) from error


class Deletion:
    """The deletion of files or directories: renamed away at once, unlinked after `delay_ms`
    (file.delete.delay.ms).

    `paths` have already been renamed. `hide` carries out `renames`, pairs of (from, to), after the `writes`
    with the information of the deleted files are on the disk. Both methods may block.
    """

    __slots__ = ("_disk", "_health", "_hiding", "_renames", "_writes", "delay_ms", "paths")

    def __init__(
        self,
        disk: Disk,
        paths: Sequence[Path],
        delay_ms: int = 0,
        *,
        renames: Sequence[tuple[Path, Path]] = (),
        writes: Sequence[DiskWrite] = (),
        health: Health | None = None,
    ) -> None:
        self._disk = disk
        self.paths = [*paths, *(target for _, target in renames)]
        self.delay_ms = delay_ms
        self._renames = renames
        self._writes = writes
        self._health = health
        self._hiding = threading.Lock()

    def hide(self) -> None:
        """Make the renames, unless that was done. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        with self._hiding:
            renames, self._renames = self._renames, ()
            writes, self._writes = self._writes, ()
            for write in writes:
                try:
                    write.run()
                except OSError as error:
                    raise self._failed("writing what is needed without deleted segments", error) from error
            for source, target in renames:
                try:
                    self._disk.rename(source, target)
                except FileNotFoundError:
                    continue  # not every segment has every file
                except OSError as error:
                    raise self._failed(f"deleting {source.name}", error) from error

    def _failed(self, doing: str, error: OSError) -> KafkaError:
        assert self._health is not None, "whoever leaves work to us says whose disk it is"
        return self._health.fail(doing, error)

    def run(self) -> None:
        """Unlink the files and directories. A failure is only logged: the next start deletes the rest."""
        self.hide()
        for path in self.paths:
            try:
                if path.is_dir():
                    remove_folder(path)
                else:
                    self._disk.unlink(path)
            except OSError as error:
                logger.warning("cannot delete %s: %s", path, error)
