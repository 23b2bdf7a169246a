"""A group of consumers before Kafka 0.9, as its members write it into ZooKeeper."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Self

from kazoo.client import KazooClient
from kazoo.security import CREATOR_ALL_ACL

BEGUN_MS = 1416882434000


class OldGroup:
    """A group of consumers in ZooKeeper, used as a context manager: at its end only persistent znodes stay.

    The znodes are those of ZookeeperConsumerConnector and ZkUtils of Kafka 0.8.2: parents are persistent and
    empty, members and owners ephemeral, offsets persistent. With a `digest` nobody else may read the znodes.
    """

    def __init__(self, connect: str, name: str, *, digest: str | None = None) -> None:
        self.root = f"/consumers/{name}"
        self._name = name
        self._client = KazooClient(
            hosts=connect,
            auth_data=[("digest", digest)] if digest else None,
            default_acl=CREATOR_ALL_ACL if digest else None,
        )

    def __enter__(self) -> Self:
        self._client.start()
        for registry in ("ids", "owners", "offsets"):
            self._client.ensure_path(f"{self.root}/{registry}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.stop()
        self._client.close()

    def join(self, host: str, **threads: int) -> str:
        """Add a member that subscribes to topics with these numbers of threads. Return its id."""
        member = f"{self._name}_{host}-{BEGUN_MS}-5b0bbe0c"
        value = {"version": 1, "subscription": threads, "pattern": "static", "timestamp": str(BEGUN_MS)}
        self._client.create(f"{self.root}/ids/{member}", json.dumps(value).encode(), ephemeral=True)
        return member

    def own(self, member: str, topic: str, partition: int, thread: int = 0) -> None:
        """Make a member's thread the owner of a partition."""
        path = f"{self.root}/owners/{topic}/{partition}"
        self._client.create(path, f"{member}-{thread}".encode(), ephemeral=True, makepath=True)

    def commit(self, topic: str, offsets: dict[int, int | str]) -> None:
        """Offsets of the next records, by partition."""
        for partition, offset in offsets.items():
            path = f"{self.root}/offsets/{topic}/{partition}"
            self._client.ensure_path(path)
            self._client.set(path, str(offset).encode())

    def exists(self, path: str) -> bool:
        """Return True if the znode exists; `path` may be any below the chroot."""
        return self._client.exists(path) is not None

    def create(self, path: str, value: str) -> None:
        """Create a persistent znode."""
        self._client.create(path, value.encode(), makepath=True)
