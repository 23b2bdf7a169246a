"""Brokers that protect their znodes: by a password (digest), and by certificates through TLS."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import Permissions
from typer.testing import CliRunner

from kafka_client import Admin, BatchProducer, Client, NewTopic, ResourceType
from kafka_client.topic_partition import TopicPartition
from logd.metadata.zookeeper.errors import NotAllowed
from logd.metadata.zookeeper.znodes import paths
from millstream.commands.cluster.cli import app
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.broker.cluster.single_node import NODE, RECORDS, clustered, fill
from tests.logd.metadata.zookeeper.secured import Secured, secured_zookeeper
from tests.logd.metadata.zookeeper.sessions import SECONDS, opened
from tests.support.depth import deep

TICK_MS = 500
"""ZooKeeper's tick, which limits session timeouts to 1 to 10 s."""
TP = TopicPartition("t", 0)
DIGEST = "logd:secret"
_numbers = itertools.count(1)

pytestmark = deep


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_zookeeper(tmp_path_factory.mktemp("secured"), TICK_MS) as running:
        yield running


@dataclass(frozen=True, kw_only=True)
class Door:
    """Ways to a chroot: one for its brokers, others for strangers."""

    plain: str
    """The address for sessions without identity."""
    zookeeper: str
    """The brokers' `zookeeper.connect`, with other settings in `settings`, `_` in place of dots."""
    settings: Mapping[str, str]
    strangers: Sequence[Mapping[str, Any]]
    """The session settings of strangers."""

    @property
    def server(self) -> str:
        """The address that needs no identity."""
        return self.plain.partition("/")[0]


@pytest.fixture(params=["digest", "tls"])
def door(secured: Secured, request: pytest.FixtureRequest) -> Door:
    return by_digest(secured) if request.param == "digest" else by_tls(secured)


def by_digest(secured: Secured) -> Door:
    plain = f"{secured.plain}/cluster-{next(_numbers)}/kafka"
    return Door(
        plain=plain,
        zookeeper=plain,
        settings={"zookeeper_set_acl": "true", "millstream_zookeeper_digest": DIGEST},
        strangers=[{"connect": plain}, {"connect": plain, "digest": "logd:wrong"}],
    )


def by_tls(secured: Secured) -> Door:
    chroot = f"/cluster-{next(_numbers)}/kafka"
    plain, secure = secured.plain + chroot, secured.secure + chroot
    settings = {
        # A handshake takes a busy machine longer than a second; each may take a third of a session.
        "zookeeper_session_timeout_ms": "9000",
        "zookeeper_connection_timeout_ms": "100000",
        "zookeeper_set_acl": "true",
        "zookeeper_ssl_client_enable": "true",
        "zookeeper_ssl_truststore_location": str(secured.trust),
        "zookeeper_ssl_truststore_type": "PEM",
        "zookeeper_ssl_keystore_location": str(secured.certificate("broker")),
        "zookeeper_ssl_keystore_type": "PEM",
    }
    another = {"connect": secure, "tls": secured.context("another")}
    return Door(plain=plain, zookeeper=secure, settings=settings, strangers=[{"connect": plain}, another])


# What brokers do


async def write(brokers: Brokers, count: int) -> None:
    """Write so many records to all in-sync replicas."""
    async with Client(brokers.bootstrap) as client, BatchProducer(client, acks=-1) as producer:
        for n in range(count):
            await (await producer.send(TP.topic, TP.partition, [(1000, None, b"%d" % n, ())]))


async def all_have(brokers: Brokers, count: int) -> None:
    """Wait until all replicas are in sync and have so many records."""

    def holds() -> bool:
        state, replicas = brokers.state(TP), brokers.replicas(TP)
        ends = {partition.high_watermark for partition in replicas.values()}
        return state is not None and set(state.isr) == set(replicas) == {1, 2, 3} and ends == {count}

    await brokers.until(holds)


async def controller(brokers: Brokers) -> int:
    """Wait for a controller and return it."""
    await brokers.until(
        lambda: sum(each.broker.catalog.controller is not None for each in brokers.up.values()) == 1
    )
    return brokers.controller.broker.node_id


async def end_session(brokers: Brokers, id_: int, server: str) -> None:
    """Let ZooKeeper end a broker's session without the broker's doing, and wait for its next session."""
    member = brokers.member(id_)
    session: Any = member.session
    ended, epoch = session.session_id, member.epoch
    identity = session._connection.client._kazoo.client_id

    def end() -> None:
        taken_over = KazooClient(hosts=server, client_id=identity)
        taken_over.start()
        taken_over.stop()
        taken_over.close()

    async with asyncio.timeout(SECONDS):
        while session.session_id == ended:  # it may have come back in between
            await asyncio.to_thread(end)
    await brokers.until(lambda: member.epoch > epoch and member.is_leased)
    assert session.statistics()["expires"] == 1


# What strangers may


def assert_closed(door: Door) -> set[str]:
    """Check that strangers can read everything but secrets, and write only the old consumers' znode.

    Return the paths that they cannot read.
    """
    writable, secret = set(), set()
    kazoo = KazooClient(hosts=door.plain)
    kazoo.start()
    try:
        left = [""]
        while left:
            path = left.pop()
            try:
                acls, _ = kazoo.get_acls(path or "/")
                left += [f"{path}/{name}" for name in kazoo.get_children(path or "/")]
            except NoAuthError:
                secret.add(path)
                continue
            if any(acl.id.id == "anyone" and acl.perms != Permissions.READ for acl in acls):
                writable.add(path)
    finally:
        kazoo.stop()
        kazoo.close()
    assert writable == {paths.CONSUMERS}
    assert secret - {paths.CLUSTER_SECRET} == {"/config/brokers", "/config/users"}
    return secret


async def assert_kept_out(door: Door, *znodes: str) -> None:
    """Check that strangers can change none of these znodes, create none, and read no secrets."""
    for stranger in door.strangers:
        async with opened(**stranger) as session:
            for path in znodes:
                before = await session.get(path)
                with pytest.raises(NotAllowed, match=f"{path} keeps this broker out"):
                    await session.set(path, b"9")
                with pytest.raises(NotAllowed):
                    await session.delete(path)
                assert await session.get(path) == before
            for path in (paths.broker(9), paths.topic("theirs"), paths.deletion(TP.topic)):
                with pytest.raises(NotAllowed):
                    await session.create(path, b"{}")
            for path in ("/config/users", "/config/brokers", paths.config("brokers", "1")):
                with pytest.raises(NotAllowed):
                    await session.get(path)


async def test_brokers_go_on_and_strangers_stay_out(door: Door, tmp_path: Path) -> None:
    """Brokers go on, and strangers stay out, after another controller's election and a session's end."""
    async with Brokers(door.zookeeper, tmp_path, **door.settings, min_insync_replicas="2") as brokers:
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("t", 1, 3)])
            changed = {"background.threads": "3"}
            await Admin(client).incremental_alter_configs("1", changed, ResourceType.BROKER)
        await write(brokers, 10)
        await all_have(brokers, 10)
        own = [paths.broker(id_) for id_ in (1, 2, 3)]
        theirs = (paths.CONTROLLER_EPOCH, paths.CONTROLLER, paths.topic("t"), paths.state(*TP), *own)
        assert paths.CLUSTER_SECRET in await asyncio.to_thread(assert_closed, door)
        await assert_kept_out(door, *theirs)

        first = await controller(brokers)
        await brokers.stop(first)
        assert await controller(brokers) != first
        await write(brokers, 10)
        await brokers.start(first)
        await all_have(brokers, 20)

        await end_session(brokers, await controller(brokers), door.server)
        await controller(brokers)
        await write(brokers, 10)
        await all_have(brokers, 30)
        await asyncio.to_thread(assert_closed, door)
        await assert_kept_out(door, *theirs)

        with pytest.raises(NotAllowed, match="give it an identity that may"):
            await Brokers(door.plain, tmp_path / "stranger").create_broker(4).start()
        assert set(brokers.up[1].alive) == {1, 2, 3}


async def test_a_single_broker_moves_by_its_identity(secured: Secured, tmp_path: Path) -> None:
    door = by_digest(secured)
    await fill(tmp_path)
    settings = {"zookeeper_connect": door.zookeeper, "node_id": str(NODE), **door.settings}
    overrides = [f"--override={key.replace('_', '.')}={value}" for key, value in settings.items()]
    folders = f"--log-dirs={tmp_path / 'a'},{tmp_path / 'b'}"
    arguments = ["move-to-zookeeper", folders, *overrides, "--yes"]
    moved = await asyncio.to_thread(CliRunner().invoke, app, arguments)  # the command has a loop of its own
    assert (moved.exit_code, DIGEST in moved.output) == (0, False), moved.output
    assert_closed(door)
    await assert_kept_out(door, paths.CONTROLLER_EPOCH, paths.topic("t"), paths.state("t", 0))
    with pytest.raises(NotAllowed, match="give it an identity that may"):
        await clustered(tmp_path, door.zookeeper).start()
    broker = clustered(tmp_path, door.zookeeper, set_acl=True, digest=DIGEST)
    await broker.start()
    try:
        ends = {(each.topic, each.partition): each.high_watermark for each in broker.ends()}
        assert ends == {("t", 0): RECORDS, ("t", 1): RECORDS, ("t", 2): RECORDS, ("u", 0): 0}
    finally:
        await broker.stop()
