"""The errors of a log directory, besides Kafka's error codes.

    MillstreamError
    └── StorageError
        ├── DirectoryLocked     another process uses the directory: stop
        └── DirectoryMismatch   the directory belongs to another node or cluster: stop

    NoRoom                 the directory is full: nothing has changed
    NotResident            the requested bytes are not in memory: run its job in a thread, then retry
    NotSearched            a batch takes long to search for a time: see `timestamp_search`

A disk that fails while the broker runs raises a KafkaError with code KAFKA_STORAGE_ERROR; see `health`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kafka_client.errors import MillstreamError


class StorageError(MillstreamError):
    """An error of a log directory that cannot be used as it is: `directory`, for `reason`."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(directory, reason)
        self.directory = directory
        self.reason = reason

    def __str__(self) -> str:
        return f"log directory {self.directory}: {self.reason}"


class NoRoom(Exception):
    """The target directory of a log's move is full; `str` says what to do. The log stays where it is."""


class DirectoryLocked(StorageError):
    """Another process holds the directory's `.lock`."""


class DirectoryMismatch(StorageError):
    """The directory's `meta.properties` names another node or cluster, or an unknown format."""


class NotResident(Exception):
    """A read that would have to wait for the disk.

    ``job`` reads the pages into memory: run it in a thread (it may raise OSError), then retry. The retry may
    raise this again, for the next file.
    """

    def __init__(self, job: Callable[[], None]) -> None:
        super().__init__("not in memory")
        self.job = job
