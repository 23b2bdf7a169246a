"""Logs that a broker finds at its start but does not own: set aside with a warning, kept, not adopted."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.topic_partition import TopicPartition
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.storage.names import PARTITION_METADATA
from tests.logd.broker.cluster.brokers import Brokers
from tests.support.depth import deep

ALL = (1, 2)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[str]]:
    """Return a function that returns the warnings about a partition's log that was set aside."""
    caplog.set_level(logging.WARNING, "logd.broker")
    return lambda name: [line for line in caplog.messages if line.startswith(f"{name} is set aside")]


async def create(brokers: Brokers, replicas: Sequence[int], *names: str) -> None:
    """Create topics of one partition, with the given replicas."""
    async with Client(brokers.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(name, assignments={0: replicas}) for name in names])
    tps = [TopicPartition(name, 0) for name in names]
    await brokers.until(lambda: all(set(brokers.replicas(tp)) == set(replicas) for tp in tps))


async def delete(brokers: Brokers, *names: str) -> None:
    async with Client(brokers.bootstrap) as client:
        await Admin(client).delete_topics(names)
    await brokers.until(lambda: not any(brokers.replicas(TopicPartition(name, 0)) for name in names))


async def write(brokers: Brokers, values: Sequence[bytes], *names: str) -> None:
    """Write values one by one; all in-sync replicas have them at the end."""
    async with Client(brokers.bootstrap) as client, BatchProducer(client, acks=-1) as producer:
        for name in names:
            for value in values:
                await (await producer.send(name, 0, [(1000, None, value, ())]))


def records(log: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(log.glob("*.log")))


def strays(*folders: Path) -> dict[str, bytes]:
    """Return the records of the logs that were set aside, by folder name."""
    return {path.name: records(path) for folder in folders for path in folder.glob("*-stray")}


def copies(brokers: Brokers, name: str) -> dict[int, bytes]:
    """Return each broker's copy of a topic's log."""
    replicas = brokers.replicas(TopicPartition(name, 0))
    return {id_: b"".join(map(bytes, one.read_all())) for id_, one in replicas.items()}


async def in_sync(brokers: Brokers, name: str) -> None:
    """Wait until all replicas are in sync."""

    def holds() -> bool:
        state = brokers.state(TopicPartition(name, 0))
        return state is not None and set(state.isr) == set(ALL)

    await brokers.until(holds)


async def test_what_is_not_this_brokers_is_set_aside_said_and_kept(
    zookeeper: str, tmp_path: Path, warnings: Callable[[str], list[str]]
) -> None:
    """Logs of other topics are set aside, with a warning, and kept.

    Topics are deleted, created again and moved to other brokers while a broker is away. A log from a backup
    may also belong to a deleted topic of the same name.
    """
    folder = tmp_path / "1-0"
    names = ("gone", "anew", "other", "moved", "few")
    async with Brokers(zookeeper, tmp_path, 2) as brokers:
        await create(brokers, ALL, *names)
        await write(brokers, [b"first", b"second"], *names)
        shutil.copytree(folder / "other-0", tmp_path / "backup")
        await delete(brokers, "other")
        await create(brokers, ALL, "other")
        await brokers.stop(1)
        expected = {f"{name}-0": records(folder / f"{name}-0") for name in ("gone", "anew", "moved")}
        expected["few-1"] = records(shutil.copytree(folder / "few-0", folder / "few-1"))
        shutil.rmtree(folder / "other-0")
        expected["other-0"] = records(shutil.copytree(tmp_path / "backup", folder / "other-0"))
        assert all(b"second" in data for data in expected.values())
        await delete(brokers, "gone", "anew")
        await create(brokers, [2], "anew")
        async with Client(brokers.bootstrap) as client:
            moved = TopicPartition("moved", 0)
            assert await Admin(client).alter_partition_reassignments({moved: [2]}) == {moved: None}
        await brokers.start(1)

        reasons = {
            "gone-0": "there is no topic gone",
            "anew-0": "it is of a topic with id ",
            "other-0": "it is of a topic with id ",
            "moved-0": "broker 1 is not among its replicas [2]",
            "few-1": "topic few has 1 partitions, there is no 1",
        }
        aside = strays(folder)
        for name, reason in reasons.items():
            ((stray, data),) = [(one, data) for one, data in aside.items() if one.startswith(f"{name}.")]
            assert data == expected[name]
            (line,) = warnings(name)
            assert line.startswith(f"{name} is set aside as {folder / stray}: {reason}")
        assert not warnings("few-0")

        for broker in brokers.up.values():
            assert set(broker.topics) == {"anew", "other", "moved", "few"}
            assert broker.broker.image.topics["few"].partitions == 1
        assert {(tp.topic, tp.partition) for tp in brokers.up[1].broker.catalog.partitions} == {
            ("other", 0),
            ("few", 0),
        }
        await create(brokers, ALL, "gone")
        assert copies(brokers, "gone") == copies(brokers, "other") == {1: b"", 2: b""}
        assert copies(brokers, "anew") == {2: b""}

        await brokers.stop(1)
        await brokers.start(1)
        assert strays(folder) == aside
    (stray,) = folder.glob("gone-0.*-stray")
    assert await read_by_itself(stray, "gone") == 2


async def read_by_itself(stray: Path, name: str) -> int:
    """Return the number of records that a standalone broker serves from a log that was set aside, as
    docs/cluster.md describes.
    """
    alone = stray.parent.with_name(f"alone-{name}")
    log = Path(shutil.copytree(stray, alone / f"{name}-0"))
    if not (log / PARTITION_METADATA).read_bytes():
        (log / PARTITION_METADATA).unlink()
    settings = {"log.dirs": str(alone), "listeners": "PLAINTEXT://127.0.0.1:0"}
    broker = BrokerServer(from_properties(settings).config)
    await broker.start()
    try:
        ((topic, index, start, end, _),) = broker.ends()
        assert (topic, index, start) == (name, 0, 0)
        return end
    finally:
        await broker.stop()


@deep
async def test_a_log_that_says_no_topic_is_taken_by_name_where_nobody_else_has_it(
    zookeeper: str, tmp_path: Path, warnings: Callable[[str], list[str]]
) -> None:
    """Logs without a topic id are used by name only where no other broker is in sync.

    A power loss took the topic id, perhaps before a topic of the same name was created again.
    """
    folder = tmp_path / "1-0"
    async with Brokers(zookeeper, tmp_path, 2) as brokers:
        await create(brokers, ALL, "anew", "empty")
        await create(brokers, [1], "only")
        await write(brokers, [b"first", b"second"], "only")
        await write(brokers, [b"old", b"older", b"oldest"], "anew")
        shutil.copytree(folder / "anew-0", tmp_path / "old")
        await delete(brokers, "anew")
        await create(brokers, ALL, "anew")
        await write(brokers, [b"young"], "anew")
        only = copies(brokers, "only")
        await brokers.stop(1)
        shutil.rmtree(folder / "anew-0")
        old = records(shutil.copytree(tmp_path / "old", folder / "anew-0"))
        for name in ("anew", "empty", "only"):
            (folder / f"{name}-0" / PARTITION_METADATA).write_bytes(b"")
        await brokers.start(1)

        assert list(strays(folder).values()) == [old]
        (line,) = warnings("anew-0")
        assert line.endswith(": it does not say its topic's id, and brokers [2] are in sync without it")
        assert copies(brokers, "only") == only
        for name in ("anew", "empty"):
            await in_sync(brokers, name)
            assert len(set(copies(brokers, name).values())) == 1
        assert b"young" in copies(brokers, "anew")[1]

    async with Brokers(zookeeper, tmp_path, 2):
        (stray,) = folder.glob("*-stray")  # the others say their topics' ids now
    assert await read_by_itself(stray, "anew") == 3


@deep
async def test_of_two_logs_the_topics_own_is_served(
    zookeeper: str, tmp_path: Path, warnings: Callable[[str], list[str]]
) -> None:
    """Logs with the topic's id are served, and others of its name set aside.

    A log directory was away while a topic was deleted and created again; its old log has more records.
    """
    folders = [tmp_path / f"1-{n}" for n in range(2)]
    async with Brokers(zookeeper, tmp_path, 1, folders=2) as brokers:
        await create(brokers, [1], "t")
        await write(brokers, [b"first", b"second", b"third"], "t")
        (log,) = tmp_path.glob("1-?/t-0")
        shutil.copytree(log, tmp_path / "old")
        await delete(brokers, "t")
        await create(brokers, [1], "t")
        await write(brokers, [b"new"], "t")
        before = copies(brokers, "t")
        await brokers.stop(1)
        (log,) = tmp_path.glob("1-?/t-0")
        other = next(folder for folder in folders if folder != log.parent)
        old = records(shutil.copytree(tmp_path / "old", other / "t-0"))
        await brokers.start(1)
        assert copies(brokers, "t") == before
        assert list(strays(*folders).values()) == [old]
        assert len(warnings("t-0")) == 1
