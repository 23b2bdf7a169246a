"""The identity of a log directory: its `meta.properties`.

    version=1                       as Apache Kafka writes it; version 0 has broker.id and no directory.id
    cluster.id=…
    node.id=…
    directory.id=<base64url>
    metadata.journal.directory.id=<base64url>       standalone broker
    metadata.zookeeper.connect=host:port/chroot     broker in a cluster

Only one of the last two lines is present, and Apache Kafka ignores it. It names the location of the cluster's
metadata: the directory.id of the log directory with the journal, or the path in ZooKeeper at the last start.
A directory with neither was never in the log.dirs of a started logd.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from logd.storage.checkpoints import (
    decode_uuid,
    encode_properties,
    encode_uuid,
    read_properties,
)
from logd.storage.disk import Disk, write_atomically
from logd.storage.errors import DirectoryMismatch
from logd.storage.names import META_PROPERTIES

JOURNAL_KEY = "metadata.journal.directory.id"
ZOOKEEPER_KEY = "metadata.zookeeper.connect"
_OTHER_DIRECTORIES = "give this broker other log.dirs"


class DirectoryIdentity(NamedTuple):
    """The identity of a log directory, with None for values that it does not have."""

    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: bytes | None = None
    journal_id: bytes | None = None
    """The directory id of the log directory that holds the metadata journal."""
    zookeeper: str | None = None
    """The last `zookeeper.connect` of a broker whose metadata is in ZooKeeper."""

    @classmethod
    def read(cls, directory: Path) -> DirectoryIdentity:
        """Read a directory's identity; it is empty for a new one. Raises DirectoryMismatch if it is
        unreadable, and OSError.
        """
        properties = read_properties(directory / META_PROPERTIES)
        version = properties.get("version", "1")
        if version not in ("0", "1"):
            raise DirectoryMismatch(directory, f"meta.properties has version {version}, not 0 or 1")
        try:
            node_id = properties.get("node.id", properties.get("broker.id"))
            return cls(
                cluster_id=properties.get("cluster.id"),
                node_id=None if node_id is None else int(node_id),
                directory_id=_uuid(properties.get("directory.id")),
                journal_id=_uuid(properties.get(JOURNAL_KEY)),
                zookeeper=properties.get(ZOOKEEPER_KEY),
            )
        except ValueError as error:
            raise DirectoryMismatch(directory, f"meta.properties cannot be read: {error}") from None

    def check(self, directory: Path, *, node_id: int, cluster_id: str | None) -> None:
        """Raise DirectoryMismatch if the directory belongs to another node or cluster."""
        if self.node_id is not None and self.node_id != node_id:
            owner = f"belongs to node {self.node_id}, not to node {node_id}"
            raise DirectoryMismatch(directory, f"{owner}: correct node.id, or {_OTHER_DIRECTORIES}")
        if self.cluster_id is not None and cluster_id is not None and self.cluster_id != cluster_id:
            raise DirectoryMismatch(
                directory, f"belongs to cluster {self.cluster_id}, not to cluster {cluster_id}: {self.remedy}"
            )

    @property
    def remedy(self) -> str:
        """The advice for a directory that belongs to another cluster."""
        if self.zookeeper is None:
            return _OTHER_DIRECTORIES
        connect = f"correct zookeeper.connect, which was {self.zookeeper} at its last start"
        return f"{connect}, or {_OTHER_DIRECTORIES}"

    def completed(
        self,
        *,
        node_id: int,
        cluster_id: str,
        directory_id: bytes,
        journal_id: bytes | None,
        zookeeper: str | None = None,
    ) -> DirectoryIdentity:
        """Return this identity with missing values added; `journal_id` or `zookeeper` replaces both
        locations.
        """
        is_moved = journal_id is not None or zookeeper is not None
        return self._replace(
            node_id=node_id,
            cluster_id=cluster_id,
            directory_id=self.directory_id or directory_id,
            journal_id=journal_id if is_moved else self.journal_id,
            zookeeper=zookeeper if is_moved else self.zookeeper,
        )

    def write(self, directory: Path, disk: Disk) -> None:
        """Write `meta.properties` unless it already has these values. Raises OSError."""
        assert self.directory_id is not None, "completed comes first"
        properties = {
            "version": "1",
            "cluster.id": str(self.cluster_id),
            "node.id": str(self.node_id),
            "directory.id": encode_uuid(self.directory_id),
        }
        if self.journal_id is not None:
            properties[JOURNAL_KEY] = encode_uuid(self.journal_id)
        if self.zookeeper is not None:
            properties[ZOOKEEPER_KEY] = self.zookeeper
        path = directory / META_PROPERTIES
        if read_properties(path) != properties:
            write_atomically(disk, path, encode_properties(properties))


def _uuid(text: str | None) -> bytes | None:
    return decode_uuid(text) if text else None
