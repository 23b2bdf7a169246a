"""Work that may block: made by the owner, run in any thread.

Nothing here touches a log's state; the owner hands a finished `Flush` back to its log.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

from logd.storage.disk import Disk, File, write_atomically
from logd.storage.health import Health

logger = logging.getLogger(__name__)


class Flush:
    """The fsyncs of one log up to `end_offset`. Run it, then hand it to `Log.finish_flush`.

    `epochs` is the leader epoch checkpoint to write, None if the one on the disk is right. `turn` is the
    log's: a flush relies on what the one before it took over.
    """

    __slots__ = ("_disk", "_epochs", "_files", "_folder", "_health", "_turn", "end_offset")

    def __init__(
        self,
        health: Health,
        disk: Disk,
        folder: Path,
        files: Sequence[File],
        epochs: tuple[Path, bytes] | None,
        end_offset: int,
        turn: threading.Lock,
    ) -> None:
        self._health = health
        self._disk = disk
        self._folder = folder
        self._files = files
        self._epochs = epochs
        self.end_offset = end_offset
        self._turn = turn

    def run(self) -> None:
        """fsync, after a flush of the same log that is running.

        Raises KafkaError(KAFKA_STORAGE_ERROR) if the disk fails; the folder is offline then.
        """
        with self._turn:
            self._run()

    def _run(self) -> None:
        if self._health.failure is not None:
            raise self._health.error()
        try:
            for file in self._files:
                file.sync()
            if self._epochs is not None:
                write_atomically(self._disk, *self._epochs)
            self._disk.sync_folder(self._folder)
        except FileNotFoundError:
            # The whole log was deleted meanwhile and its folder renamed: nothing is left to keep.
            logger.debug("log %s went away while it was flushed", self._folder.name)
        except OSError as error:
            raise self._health.fail(f"flushing {self._folder.name}", error) from error


class Deletion:
    """Files or folders already renamed away, to be unlinked after `delay_ms` (file.delete.delay.ms)."""

    __slots__ = ("_disk", "delay_ms", "paths")

    def __init__(self, disk: Disk, paths: Sequence[Path], delay_ms: int = 0) -> None:
        self._disk = disk
        self.paths = paths
        self.delay_ms = delay_ms

    def run(self) -> None:
        """Unlink them. A failure is logged only: the next start deletes what is left."""
        for path in self.paths:
            try:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    self._disk.unlink(path)
            except OSError as error:
                logger.warning("cannot delete %s: %s", path, error)
