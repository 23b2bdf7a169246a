"""The log directory that keeps the journal of the cluster's metadata.

The journal may be in any of the log.dirs, in any order. A directory of logd names the directory with the
journal in its ``meta.properties`` (``logd.storage.identity``); a directory of Apache Kafka does not. Without
a journal, a new one is created only over directories that never had one. Otherwise every topic would get the
default settings, and a topic without retention would lose records to the default retention. The same holds
for directories of a broker whose metadata is in ZooKeeper, which are marked so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from logd.metadata.journal_store import FILE_NAME
from logd.storage import StorageError
from logd.storage.checkpoints import encode_uuid

if TYPE_CHECKING:
    from logd.storage import LogDirectory

ADOPT = "millstream.adopt.log.dirs"


def journal_directory(
    directories: Sequence[LogDirectory], unusable: Sequence[StorageError], *, adopt: bool = False
) -> LogDirectory:
    """Return the log directory whose journal counts, or is to be begun. Raises StorageError if that is
    unclear.

    ``unusable`` says why the other directories of log.dirs cannot be looked into. ``adopt`` begins a new one
    though the directories had one: the operator has been asked.
    """
    holders = [directory for directory in directories if (directory.path / FILE_NAME).exists()]
    if len(holders) > 1:
        raise StorageError(holders[1].path, _two(holders))
    if holders:
        return holders[0]
    shared = next((directory for directory in directories if directory.identity.zookeeper is not None), None)
    if shared is not None and not adopt:
        raise StorageError(shared.path, _elsewhere(shared))
    if unusable:
        first = unusable[0]
        raise StorageError(
            first.directory,
            f"{first.reason}. {FILE_NAME}, without which no broker starts, may be in there: none of the "
            "other folders has it. Mend the folder, or take it out of log.dirs",
        )
    orphan = next((directory for directory in directories if directory.identity.journal_id is not None), None)
    if orphan is not None and not adopt:
        raise StorageError(orphan.path, _missing(orphan))
    return directories[0]


def _two(holders: Sequence[LogDirectory]) -> str:
    places = ", ".join(_described(directory.path) for directory in holders)
    return (
        f"{FILE_NAME} is in more than one of log.dirs: {places}. Only one is this cluster's: "
        "rename the others, or take their folders out of log.dirs"
    )


def _described(path: Path) -> str:
    status = (path / FILE_NAME).stat()
    return f"{path} ({status.st_size} bytes, written {_time(status.st_mtime_ns)})"


def _time(ns: int) -> str:
    import datetime  # only where a start is refused

    written = datetime.datetime.fromtimestamp(ns / 1e9, datetime.UTC)
    return written.isoformat(" ", "seconds")


def _elsewhere(directory: LogDirectory) -> str:
    identity = directory.identity
    return (
        f"belongs to cluster {identity.cluster_id}, whose metadata is in ZooKeeper: start the broker with "
        f"zookeeper.connect={identity.zookeeper}. If that is lost, start once with --override {ADOPT}=true: "
        "all topics found are taken in then, with default settings"
    )


def _missing(directory: LogDirectory) -> str:
    identity = directory.identity
    assert identity.journal_id is not None
    where = (
        "was in here"
        if identity.journal_id == identity.directory_id
        else f"is in the folder whose meta.properties says directory.id={encode_uuid(identity.journal_id)}"
    )
    return (
        f"belongs to cluster {identity.cluster_id}, whose {FILE_NAME} is in none of log.dirs; it {where}. "
        f"Put that back, or, if it is lost, start once with --override {ADOPT}=true: "
        "all topics found are taken in then, with default settings"
    )
