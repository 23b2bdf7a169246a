"""Mistakes for which a broker, or a client, of a cluster is refused.

The error names the thing, its value and what helps. Nothing changes in ZooKeeper or in a log directory.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_client import Admin, Client, NewTopic
from kafka_client.errors import ConfigError, KafkaError, MillstreamError
from logd.metadata.zookeeper.errors import DuplicateBrokerId, ForeignBroker, Unreachable
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from logd.metadata.zookeeper.znodes import paths, znodes
from logd.metadata.zookeeper.znodes.znodes import Endpoint, Registration
from logd.storage import DirectoryMismatch
from tests.logd.broker.cluster.brokers import Brokers
from tests.support.depth import deep

OTHER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


Attempt = Callable[[], Coroutine[Any, Any, None]]


class Refused(NamedTuple):
    """A mistake and its error. `prepare` gets the cluster, of broker 1 alone, and a path for a folder."""

    prepare: Callable[[Brokers, Path], Attempt]
    error: type[MillstreamError]
    says: str
    """The error's text, with {port} of broker 1, {folder}, {zookeeper} and {cluster}, the cluster's id."""


def _folder_of(folder: Path, *, node: int = 2, cluster: str = OTHER_CLUSTER, zookeeper: str = "") -> str:
    folder.mkdir()
    lines = ["version=1", f"cluster.id={cluster}", f"node.id={node}", "directory.id=AAAAAAAAAAAAAAAAAAAAAQ"]
    lines += [f"metadata.zookeeper.connect={zookeeper}"] if zookeeper else []
    (folder / "meta.properties").write_text("\n".join(lines) + "\n")
    return str(folder)


def _same_id(brokers: Brokers, folder: Path) -> Attempt:
    return brokers.create_broker(1, log_dirs=str(folder)).start


def _foreign_folder(brokers: Brokers, folder: Path) -> Attempt:
    return brokers.create_broker(2, log_dirs=_folder_of(folder)).start


def _wrong_chroot(brokers: Brokers, folder: Path) -> Attempt:
    own = _folder_of(folder, zookeeper=brokers.zookeeper)
    return brokers.create_broker(2, log_dirs=own, zookeeper=f"{brokers.zookeeper}-mistyped").start


def _foreign_node(brokers: Brokers, folder: Path) -> Attempt:
    return brokers.create_broker(2, log_dirs=_folder_of(folder, node=7)).start


def _journal(brokers: Brokers, folder: Path) -> Attempt:
    folder.mkdir()
    (folder / "metadata.journal").touch()
    return brokers.create_broker(2, log_dirs=str(folder)).start


def _folder_without_journal(brokers: Brokers, folder: Path) -> Attempt:
    own = _folder_of(folder)
    with (folder / "meta.properties").open("a") as file:
        file.write("metadata.journal.directory.id=AAAAAAAAAAAAAAAAAAAAAg\n")
    return brokers.create_broker(2, log_dirs=own).start


def _kafka_is_there(brokers: Brokers, folder: Path) -> Attempt:
    async def start() -> None:
        session = await Session(ZooKeeperSettings.of(brokers.zookeeper)).open()
        kafkas = Registration(endpoints=(Endpoint("PLAINTEXT", "k", 9092, "PLAINTEXT"),))
        try:
            await session.create(paths.broker(9), znodes.encode_registration(kafkas, 0), ephemeral=True)
            await brokers.create_broker(2, log_dirs=str(folder)).start()
        finally:
            await session.close()

    return start


def _no_ensemble(brokers: Brokers, folder: Path) -> Attempt:
    own = _folder_of(folder, zookeeper=brokers.zookeeper)
    return brokers.create_broker(
        2, log_dirs=own, zookeeper="127.0.0.1:1/kafka", connection_timeout_ms=200
    ).start


def _no_such_listener(brokers: Brokers, folder: Path) -> Attempt:
    async def start() -> None:
        await brokers.create_broker(2, log_dirs=str(folder), inter_broker_listener_name="INSIDE").start()

    return start


def _too_many_replicas(brokers: Brokers, folder: Path) -> Attempt:
    async def create() -> None:
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("t", 1, 3)])

    return create


REFUSED = {
    "a duplicate broker id": Refused(
        _same_id,
        DuplicateBrokerId,
        "broker.id=1: a broker with this id is registered already (PLAINTEXT://127.0.0.1:{port}); give this "
        "one another id, or stop that one",
    ),
    "a foreign cluster id in the folder": Refused(
        _foreign_folder,
        DirectoryMismatch,
        f"log directory {{folder}}: belongs to cluster {OTHER_CLUSTER}, and cluster {{cluster}} is at "
        "zookeeper.connect={zookeeper}: give this broker other log.dirs",
    ),
    "a missing chroot": Refused(
        _wrong_chroot,
        DirectoryMismatch,
        f"log directory {{folder}}: belongs to cluster {OTHER_CLUSTER}, and there is none at "
        "zookeeper.connect={zookeeper}-mistyped: correct zookeeper.connect, which was {zookeeper} at its "
        "last start, or give this broker other log.dirs",
    ),
    "another node's folder": Refused(
        _foreign_node,
        DirectoryMismatch,
        "log directory {folder}: belongs to node 7, not to node 2: correct node.id, or give this broker "
        "other log.dirs",
    ),
    "the folder of a broker by itself": Refused(
        _journal,
        DirectoryMismatch,
        "log directory {folder}: holds metadata.journal, the metadata of a broker by itself, with which it "
        "cannot join a cluster: move that to ZooKeeper with `millstream cluster move-to-zookeeper`, start it "
        "without zookeeper.connect, or give it other log.dirs",
    ),
    "one folder of a broker by itself": Refused(
        _folder_without_journal,
        DirectoryMismatch,
        f"log directory {{folder}}: belongs to cluster {OTHER_CLUSTER}, and cluster {{cluster}} is at "
        "zookeeper.connect={zookeeper}: it is of a broker by itself, whose metadata.journal is in a folder "
        "that log.dirs lacks: add that and move it to ZooKeeper with `millstream cluster move-to-zookeeper`, "
        "start the broker without zookeeper.connect, or give it other log.dirs",
    ),
    "a broker of Apache Kafka": Refused(
        _kafka_is_there,
        ForeignBroker,
        "zookeeper.connect={zookeeper}: broker 9 of that cluster (PLAINTEXT://k:9092) is Apache Kafka's, "
        "which logd cannot share a cluster with: have zookeeper.connect end with a path of its own, such as "
        "/millstream",
    ),
    "an ensemble that is down": Refused(
        _no_ensemble,
        Unreachable,
        "no ZooKeeper at 127.0.0.1:1/kafka within 0.2 s (127.0.0.1:1: Connection refused): start it, correct "
        "zookeeper.connect, or raise zookeeper.connection.timeout.ms",
    ),
    "a listener that there is not": Refused(
        _no_such_listener,
        ConfigError,
        "inter.broker.listener.name=INSIDE: a name that listeners has: PLAINTEXT",
    ),
    "a replication factor above the brokers": Refused(
        _too_many_replicas,
        KafkaError,
        "INVALID_REPLICATION_FACTOR: topic 't': replication factor 3 is larger than the 1 brokers that are "
        "alive: ask for a smaller one, or start more brokers",
    ),
}


@deep
@pytest.mark.parametrize("what", REFUSED)
async def test_bad_input_is_told_and_touches_nothing(zookeeper: str, tmp_path: Path, what: str) -> None:
    refused = REFUSED[what]
    folder = tmp_path / "other"
    async with Brokers(zookeeper, tmp_path, count=1) as brokers:
        own = brokers.up[1].broker
        attempt = refused.prepare(brokers, folder)
        before = await _znodes(zookeeper), _files(folder)
        with pytest.raises(refused.error) as raised:
            await attempt()
        expected = refused.says.format(
            port=own.endpoint.port, folder=folder, zookeeper=zookeeper, cluster=own.cluster_id
        )
        assert str(raised.value) == expected
        znodes, files = await _znodes(zookeeper), _files(folder)
        assert znodes == before[0]
        assert files | before[1] == files


async def _znodes(zookeeper: str) -> dict[str, int]:
    """Return the persistent znodes with the transaction ids that wrote them, also next to the chroot."""
    session = await Session(ZooKeeperSettings.of(zookeeper.partition("/")[0])).open()
    znodes: dict[str, int] = {}

    async def walk(path: str) -> None:
        stat = await session.exists(path or "/")
        if stat is not None and not stat.ephemeral_owner:
            znodes[path] = stat.mzxid
            for child in await session.find_children(path or "/"):
                if path or f"/{child}".startswith(f"/{zookeeper.partition('/')[2]}"):
                    await walk(f"{path}/{child}")

    try:
        await walk("")
    finally:
        await session.close()
    return znodes


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
