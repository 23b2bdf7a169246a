"""Partition logs on disk, in Apache Kafka's own format: a Java broker can open what is written here.

`LogDirectory` is one entry of `log.dirs`; it holds a `Log` for every partition in it. One owner (the event
loop) calls everything; what may block for long is handed out as a job, a callable safe to run in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.first_use import at_first_use

if TYPE_CHECKING:
    from logd.storage.disk import is_resident, warm
    from logd.storage.errors import DirectoryLocked, DirectoryMismatch, NotResident, StorageError
    from logd.storage.index.transaction import AbortedTransaction
    from logd.storage.jobs import Deletion, Flush
    from logd.storage.log.log import Log
    from logd.storage.log.reader import TimestampOffset
    from logd.storage.log.writer import Appended
    from logd.storage.log_directory import LogDirectory
    from logd.storage.producers.producer import Producer
    from logd.storage.producers.state import ProducerState

__all__ = [
    "AbortedTransaction",
    "Appended",
    "Deletion",
    "DirectoryLocked",
    "DirectoryMismatch",
    "Flush",
    "Log",
    "LogDirectory",
    "NotResident",
    "Producer",
    "ProducerState",
    "StorageError",
    "TimestampOffset",
    "is_resident",
    "warm",
]

_MODULES = {
    "logd.storage.disk": (
        "is_resident",
        "warm",
    ),
    "logd.storage.errors": (
        "DirectoryLocked",
        "DirectoryMismatch",
        "NotResident",
        "StorageError",
    ),
    "logd.storage.log_directory": ("LogDirectory",),
    "logd.storage.index.transaction": ("AbortedTransaction",),
    "logd.storage.jobs": (
        "Deletion",
        "Flush",
    ),
    "logd.storage.log.log": ("Log",),
    "logd.storage.log.reader": ("TimestampOffset",),
    "logd.storage.log.writer": ("Appended",),
    "logd.storage.producers.producer": ("Producer",),
    "logd.storage.producers.state": ("ProducerState",),
}
__getattr__ = at_first_use(__name__, _MODULES)
