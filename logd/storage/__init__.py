"""Partition logs on disk, in Apache Kafka's own format: a Java broker can open what is written here.

`LogFolder` is one entry of `log.dirs`; it holds a `Log` for every partition in it. One owner (the event loop)
calls everything; what may block for long is handed out as a job, a callable safe to run in a thread.
"""

from logd.storage.errors import FolderLocked, FolderMismatch, StorageError
from logd.storage.folder import LogFolder
from logd.storage.jobs import Deletion, Flush
from logd.storage.log import Appended, Log, TimestampOffset
from logd.storage.producers import ProducerState

__all__ = [
    "Appended",
    "Deletion",
    "Flush",
    "FolderLocked",
    "FolderMismatch",
    "Log",
    "LogFolder",
    "ProducerState",
    "StorageError",
    "TimestampOffset",
]
