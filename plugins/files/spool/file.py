"""A spooled file: opened where it was left, read batch by batch, and watched for changes."""

from __future__ import annotations

import csv
import logging
import os
import zipfile
import zlib

from connect.api import ConnectError, DataError, Schema
from plugins.files.spool.config import SpoolSourceConfig
from plugins.files.spool.folder import Entry
from plugins.files.spool.offset import FileIdentity, FileOffset, partition_of
from plugins.files.spool.readers import can_grow, open_rows
from plugins.files.spool.rows import RowReader, Rows

_log = logging.getLogger(__name__)
_UNREADABLE = (
    ConnectError, DataError, OSError, EOFError, ValueError, csv.Error, zlib.error, zipfile.BadZipFile
)  # fmt: skip


class FileFailed(ConnectError):
    """An error for a file that cannot be read (any further)."""


class StillWritten(Exception):
    """A signal that a file has grown since it was opened: it is read on once it stands still again."""


class SpoolFile:
    """A file of the folder. `stored` is its committed source offset, of it or of a file that had the name."""

    def __init__(self, entry: Entry, config: SpoolSourceConfig, stored: FileOffset | None) -> None:
        self.path, self.name = entry.path, entry.name
        self.partition = partition_of(entry.name)
        self._config = config
        self._stored = stored
        self._reader: RowReader | None = None
        self.value_schema: Schema | None = None
        """The schema of the values, if they have one."""
        is_stored = stored is not None and stored.identity.has_status(entry.status)
        head = FileOffset(FileIdentity.of_status(entry.status), 0, 0)
        self.offset: FileOffset = stored if stored is not None and is_stored else head
        """The place behind the last row that was read."""

    def __str__(self) -> str:
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    def open(self) -> None:
        """Open the file behind what was read of it. Raises FileFailed, or FileNotFoundError if it is gone."""
        try:
            identity = FileIdentity.of(self.path)
            self.offset = self._start(identity)
            if self.offset.is_over:
                return
            self._reader = open_rows(self.path, self._config, self.offset.position, self.offset.line)
        except FileNotFoundError:
            raise
        except _UNREADABLE as e:
            raise self.failed(e) from e
        self.value_schema = self._reader.value_schema
        if self.offset.position < self._reader.position:  # behind the header of CSV
            self.offset = self.offset._replace(position=self._reader.position, line=self._reader.line)

    def _start(self, identity: FileIdentity) -> FileOffset:
        """Return the offset to go on from: the stored one if it is of this file, or the head."""
        head = FileOffset(identity, 0, 0)
        stored = self._stored
        if stored is None:
            return head
        if is_same(identity, stored, self._config):
            return stored._replace(identity=identity)
        if (
            not stored.failed
            and can_grow(self._config, self.path)
            and stored.position <= identity.size
            and identity.has_grown_from(stored.identity, self.path)
        ):
            _log.warning("%s has grown; it is read on behind line %d", self, stored.line)
            return FileOffset(identity, stored.position, stored.line)
        if not stored.is_over:
            _log.warning("%s is another file than the one of which %d lines were read", self, stored.line)
        return head

    def read(self) -> Rows:
        """Return the next rows, and set `offset` behind them.

        Raises StillWritten if the file has grown, FileFailed if it cannot be read any further.
        """
        assert self._reader is not None
        try:
            rows = self._reader.read(self._config.batch_size)
        except _UNREADABLE as e:
            self._check_unchanged()
            raise self.failed(e) from e
        self._check_unchanged()
        position, line = self._reader.position, self._reader.line
        self.offset = FileOffset(self.offset.identity, position, line, rows.ended)
        return rows

    def _check_unchanged(self) -> None:
        """Refuse what was read while the file was written to.

        A file whose name was removed or given to another one is read to its end all the same.
        """
        try:
            status = os.stat(self.path)
        except OSError:
            return
        identity = self.offset.identity
        if identity.has_status(status) or status.st_ino != identity.inode:
            return
        if status.st_size > identity.size and can_grow(self._config, self.path):
            raise StillWritten
        raise self.failed(ConnectError("it was changed while it was read"))

    def failed(self, error: BaseException) -> FileFailed:
        """Return the error of the file, which says where it happened."""
        return FileFailed(f"{self}, after line {self.offset.line}: {error}")

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def is_same(identity: FileIdentity, stored: FileOffset, config: SpoolSourceConfig) -> bool:
    """Return True if the offset is of the file.

    A file that is to be moved away once it is done is another one if it has another inode. One that stays may
    have been copied to another place meanwhile, as by a restored backup.
    """
    if stored.is_over and config.cleanup_policy != "none":
        return identity == stored.identity
    return identity.is_copy_of(stored.identity)
