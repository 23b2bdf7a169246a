"""The files of a new log, made behind the answer to CreateTopics."""

from __future__ import annotations

from pathlib import Path

from kafka_client.private_files import DIRECTORY_MODE
from logd.storage.checkpoints import encode_partition_metadata
from logd.storage.disk import Disk
from logd.storage.names import LOG_SUFFIX, PARTITION_METADATA, offset_name


class Placement:
    """Makes a log's directory with the files an empty log has, at once or at the first use of one of them.

    Nothing is forced to the disk: the next start creates the log again, from the cluster's metadata, if a
    power loss took it.
    """

    __slots__ = ("_directory", "_disk", "_topic_id", "is_done")

    def __init__(self, disk: Disk, directory: Path, topic_id: bytes | None) -> None:
        self._disk = disk
        self._directory = directory
        self._topic_id = topic_id
        self.is_done = False

    def carry_out(self) -> None:
        """Create the log's directory and files. Raises OSError.

        A second call does no harm, even from another thread at the same time.
        """
        if self.is_done:
            return
        self._directory.mkdir(DIRECTORY_MODE, exist_ok=True)
        if self._topic_id is not None:
            # Before anything else: a log whose directory does not say so was not made by us.
            file = self._disk.open(self._directory / PARTITION_METADATA)
            file.write(0, [encode_partition_metadata(self._topic_id)])
            file.close()
        self._disk.open(self._directory / offset_name(0, LOG_SUFFIX)).close()
        self.is_done = True
