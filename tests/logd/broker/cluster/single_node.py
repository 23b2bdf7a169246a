"""A standalone broker with data, copies of its folder, and its move to ZooKeeper, killed at any step."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from kafka_client.records import build_batch
from logd.broker.cluster.membership import ClusterMembership
from logd.broker.cluster.zookeeper_move import SingleNode, move_in
from logd.broker_server import BrokerServer
from logd.config.broker import BrokerConfig
from logd.config.load import from_properties
from logd.metadata.image import ClusterImage
from logd.metadata.zookeeper.moving import Standing
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from logd.metadata.zookeeper.znodes.tree import read_tree
from logd.storage.disk import Disk
from logd.storage.testing import FaultyDisk

NODE = 1
SESSION_MS = 2_000
RECORDS = 5


class Killed(BaseException):
    """The end of the killed command; no code may catch it."""


class Steps:
    """A counter of what a move writes to ZooKeeper and to the disk, which kills the move before one of these
    steps.
    """

    def __init__(self, kill_at: int | None = None) -> None:
        self.kill_at = kill_at
        self.count = 0

    def take(self) -> None:
        """Count one more step. Raises Killed at the step `kill_at` and ever after."""
        if self.kill_at is not None and self.count >= self.kill_at:
            raise Killed
        self.count += 1


class CountedDisk(FaultyDisk):
    """A disk whose operations count as steps if they change something."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def check(self, operation: str, path: Path) -> None:
        """See `FaultyDisk.check`."""
        if operation in ("write", "truncate", "rename", "unlink", "sync"):
            self._steps.take()
        super().check(operation, path)


def settings(zookeeper: str, **identity: Any) -> ZooKeeperSettings:
    return ZooKeeperSettings.of(zookeeper, session_timeout_ms=SESSION_MS, **identity)


async def opened(zookeeper: str, steps: Steps | None = None) -> Session:
    """Open a session; with `steps`, count each write of it as a step."""
    session = await Session(settings(zookeeper)).open()
    if steps is not None:
        connection: Any = session._connection
        carry_out = connection.write

        async def write(operation: object) -> Any:
            steps.take()
            return await carry_out(operation)

        connection.write = write
    return session


def single(folder: Path, disk: Disk | None = None) -> SingleNode:
    return SingleNode((str(folder / "a"), str(folder / "b")), NODE, disk=disk)


def standalone(folder: Path) -> BrokerServer:
    """Return a standalone broker with two log directories."""
    return BrokerServer(_config(folder))


def clustered(folder: Path, zookeeper: str, **identity: Any) -> BrokerServer:
    """Return the same broker as a member of a cluster."""
    config = _config(folder, **{"zookeeper.connect": zookeeper})
    return BrokerServer(config, membership=ClusterMembership(settings(zookeeper, **identity)))


def _config(folder: Path, **more: str) -> BrokerConfig:
    return from_properties(
        {
            "node.id": str(NODE),
            "log.dirs": f"{folder / 'a'},{folder / 'b'}",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            **more,
        }
    ).config


async def fill(folder: Path) -> None:
    """Fill a standalone broker: topics with configs and records, a deleted topic, changed configs, producer
    ids.
    """
    broker = standalone(folder)
    await broker.start()
    await broker.create_topic("t", 3, {"retention.ms": "-1"})
    await broker.create_topic("gone", 2, {})
    inner = broker.broker
    await inner.delete_topic(inner.catalog.topics["gone"])
    await broker.create_topic("u", 1, {})
    for index in range(3):
        partition = inner.catalog.topics["t"].partitions[index]
        assert partition is not None
        partition.append(build_batch([(n, None, b"%d" % n, ()) for n in range(RECORDS)]), inner.now_ms())
    await inner.change_configs("", lambda _: {"log.retention.hours": "900"}, validate_only=False)
    await inner.change_configs(str(NODE), lambda _: {"background.threads": "3"}, validate_only=False)
    await inner.producer_ids.take()
    await broker.stop()


def copied(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return target


async def moved(folder: Path, zookeeper: str, steps: Steps | None = None) -> Standing:
    """Move the node to ZooKeeper. Raises Killed at the step of `steps`. The session ends in any case, as
    after a kill.
    """
    session = await opened(zookeeper, steps)
    try:
        with single(folder, CountedDisk(steps) if steps is not None else None) as node:
            return await move_in(session, node, lambda: 1_700_000_000_000)
    finally:
        await session.close()


async def image_in(zookeeper: str) -> ClusterImage:
    """Return the cluster's image in ZooKeeper."""
    session = await opened(zookeeper)
    try:
        return ClusterImage.of((await read_tree(session)).changes)
    finally:
        await session.close()
