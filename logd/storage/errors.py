"""What can go wrong with a log folder, beyond Kafka's own error codes.

    MillstreamError
    └── StorageError
        ├── FolderLocked     another process works in the folder: stop
        └── FolderMismatch   the folder belongs to another node or cluster: stop

    NoRoom                 the folder is full: nothing has changed
    NotResident            what was asked for is not in memory: run its job in a thread, then ask again
    NotSearched            a batch takes long to search for a time: see `timestamp_search`

A disk that fails while the broker runs is a KafkaError with code KAFKA_STORAGE_ERROR; see `health`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kafka_client.errors import MillstreamError


class StorageError(MillstreamError):
    """A log folder that cannot be used as it is; `folder` says which."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(folder, reason)
        self.folder = folder
        self.reason = reason

    def __str__(self) -> str:
        return f"log folder {self.folder}: {self.reason}"


class NoRoom(Exception):
    """The folder a log was to move to is full; `str` says what to do. The log stays where it is."""


class FolderLocked(StorageError):
    """Another process holds the folder's `.lock`."""


class FolderMismatch(StorageError):
    """The folder's `meta.properties` names another node or cluster, or a format we do not know."""


class NotResident(Exception):
    """A read that would have to wait for the disk. ``job`` reads the pages in: run it in a thread (it may
    raise OSError), then ask again, which may raise this once more, for the next file.
    """

    def __init__(self, job: Callable[[], None]) -> None:
        super().__init__("not in memory")
        self.job = job
