"""What can go wrong with a log folder, beyond Kafka's own error codes.

    MillstreamError
    └── StorageError
        ├── FolderLocked     another process works in the folder: stop
        └── FolderMismatch   the folder belongs to another node or cluster: stop

A disk that fails while the broker runs is a KafkaError with code KAFKA_STORAGE_ERROR; see `health`.
"""

from __future__ import annotations

from pathlib import Path

from logd.errors import MillstreamError


class StorageError(MillstreamError):
    """A log folder that cannot be used as it is; `folder` says which."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(folder, reason)
        self.folder = folder
        self.reason = reason

    def __str__(self) -> str:
        return f"log folder {self.folder}: {self.reason}"


class FolderLocked(StorageError):
    """Another process holds the folder's `.lock`."""


class FolderMismatch(StorageError):
    """The folder's `meta.properties` names another node or cluster, or a format we do not know."""
