"""A standalone broker moves to ZooKeeper: nothing is lost, at whatever step the move is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kafka_client.topic_partition import TopicPartition
from logd.broker.cluster.zookeeper_move import look
from logd.metadata.image import Change, ClusterImage
from logd.metadata.journal_store import FILE_NAME, MOVED_NAME, JournalStore
from logd.metadata.zookeeper import batches, moving
from logd.metadata.zookeeper.errors import ChrootTaken, UnfinishedMove
from logd.metadata.zookeeper.moving import Standing, begin, steps
from logd.metadata.zookeeper.znodes import paths
from logd.metadata.zookeeper.znodes.znodes import MoveZnode, encode_controller
from logd.storage import StorageError
from logd.storage.disk import PosixDisk
from logd.storage.identity import DirectoryIdentity
from logd.storage.names import CLEAN_SHUTDOWN, LEADER_EPOCHS, PARTITION_METADATA
from tests.logd.broker.cluster.single_node import (
    NODE,
    RECORDS,
    Killed,
    Steps,
    clustered,
    copied,
    fill,
    image_in,
    moved,
    opened,
    settings,
    single,
    standalone,
)
from tests.support.depth import deep
from tests.support.metadata_folder import as_apache_kafka_leaves_it


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return log directories of a broker that stopped cleanly; tests copy them."""
    folder = tmp_path_factory.mktemp("single")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    """Return a copy of the log directories for one test."""
    return copied(filled, tmp_path / "node")


def journal_of(folder: Path) -> list[Change] | None:
    """Return the changes in the journal, or None if the folder has no journal any more."""
    (home,) = [each.parent for each in folder.glob("*/metadata.journal*")]
    if not (home / FILE_NAME).exists():
        return None
    store = JournalStore(home, PosixDisk())
    try:
        return store.load().as_changes()
    finally:
        store.close()


def assert_done(folder: Path, there: ClusterImage, expected: ClusterImage) -> None:
    assert steps(there, expected) == []
    assert not list(folder.glob(f"*/{FILE_NAME}"))
    assert len(list(folder.glob(f"*/{MOVED_NAME}"))) == 1
    for name in ("a", "b"):
        identity = DirectoryIdentity.read(folder / name)
        assert identity.zookeeper is not None and identity.journal_id is None


async def test_everything_is_there_afterwards(zookeeper: str, folder: Path) -> None:
    with single(folder) as node:
        image, cluster_id = node.image, node.cluster_id
    assert image is not None
    before = image.topics["t"]
    assert await moved(folder, zookeeper) is Standing.EMPTY
    there = await image_in(zookeeper)
    assert_done(folder, there, image)
    assert there.topics.keys() == {"t", "u"} and there.topics["t"] == before
    assert there.broker_configs == {
        "": {"log.retention.hours": "900"},
        str(NODE): {"background.threads": "3"},
    }
    assert there.next_producer_id == 1000
    assert there.partitions[TopicPartition("t", 2)].isr == (NODE,)
    broker = clustered(folder, zookeeper)
    await broker.start()
    try:
        assert broker.broker.cluster_id == cluster_id
        ends = {(each.topic, each.partition): each.high_watermark for each in broker.ends()}
        assert ends == {("t", 0): RECORDS, ("t", 1): RECORDS, ("t", 2): RECORDS, ("u", 0): 0}
        assert broker.broker.config.log_retention_hours == 900
        assert broker.broker.config.background_threads == 3
        assert await broker.broker.producer_ids.take() == 1000
    finally:
        await broker.stop()
    assert not list(folder.glob("*/*-stray"))


async def test_leader_epochs_go_on(zookeeper: str, folder: Path) -> None:
    """Leader epochs go on from the log's last one: no log leads in an older epoch."""
    (log,) = folder.glob("*/t-1")
    (log / LEADER_EPOCHS).write_text("0\n2\n0 0\n7 3\n")
    await moved(folder, zookeeper)
    there = await image_in(zookeeper)
    assert there.partitions[TopicPartition("t", 1)].leader_epoch == 7
    assert there.partitions[TopicPartition("t", 0)].leader_epoch == 0
    broker = clustered(folder, zookeeper)
    await broker.start()
    partition = broker.broker.catalog.partitions[TopicPartition("t", 1)]
    assert partition.leader_epoch > 7
    await broker.stop()


async def test_an_epoch_that_recovery_began_counts(zookeeper: str, folder: Path) -> None:
    """Epochs that a standalone broker began after an unclean stop are moved too."""
    for name in ("a", "b"):
        (folder / name / CLEAN_SHUTDOWN).unlink()
    broker = standalone(folder)
    await broker.start()
    await broker.stop()
    await moved(folder, zookeeper)
    there = await image_in(zookeeper)
    assert {state.leader_epoch for state in there.partitions.values()} == {1}


async def test_topics_that_were_found_on_disk_are_moved(zookeeper: str, folder: Path) -> None:
    """Topics of a folder that Apache Kafka wrote are moved, once a standalone broker has opened them."""
    as_apache_kafka_leaves_it(folder / "a", folder / "b")
    with pytest.raises(StorageError, match="nothing to move"):
        single(folder).__enter__()
    broker = standalone(folder)
    await broker.start()
    await broker.stop()
    await moved(folder, zookeeper)
    assert (await image_in(zookeeper)).topics.keys() == {"t", "u"}
    joined = clustered(folder, zookeeper)
    await joined.start()
    assert [each.high_watermark for each in joined.ends() if each.topic == "t"] == [RECORDS] * 3
    await joined.stop()


@deep
def test_a_killed_move_is_gone_on_with(
    zookeeper: str, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moves killed before any step can be finished.

    Until the move is done the journal is as it was, and no broker starts with the chroot.
    """
    monkeypatch.setattr(batches, "BATCH_OPERATIONS_MAX", 3)

    async def test() -> None:
        all_steps = Steps()
        await moved(copied(filled, tmp_path / "whole"), f"{zookeeper}/whole", all_steps)
        for at in range(all_steps.count):
            await killed_at(at)
        print(f"{all_steps.count} steps")

    async def killed_at(at: int) -> None:
        folder, chroot = copied(filled, tmp_path / str(at)), f"{zookeeper}/{at}"
        with single(folder) as node:
            image, whose = node.image, node.move
        assert image is not None
        journal = journal_of(folder)
        with pytest.raises(Killed):
            await moved(folder, chroot, Steps(at))
        assert journal_of(folder) in (journal, None)
        session = await opened(chroot)
        standing = await moving.standing(session, whose)
        if standing is Standing.BEGUN:
            with pytest.raises(UnfinishedMove, match="move-to-zookeeper"):
                await moving.refuse_unfinished(session)
        await session.close()
        assert standing is not Standing.DONE
        if journal_of(folder) is None:
            assert steps(await image_in(chroot), image) == [], "it counts no more before all is written"
        assert await moved(folder, chroot) is standing
        assert_done(folder, await image_in(chroot), image)
        assert await moved(folder, chroot) is Standing.DONE

    run(test)


@deep
@pytest.mark.parametrize("at", [0.3, 0.6, 0.8, 0.95])
async def test_the_journal_may_go_on_before_the_move_does(
    zookeeper: str, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: float
) -> None:
    """Standalone starts between two runs of the move may create, delete and change topics."""
    monkeypatch.setattr(batches, "BATCH_OPERATIONS_MAX", 3)
    all_steps = Steps()
    await moved(copied(filled, tmp_path / "whole"), f"{zookeeper}/whole", all_steps)
    folder = copied(filled, tmp_path / "killed")
    with pytest.raises(Killed):
        await moved(folder, zookeeper, Steps(int(all_steps.count * at)))
    broker = standalone(folder)
    await broker.start()
    catalog = broker.broker.catalog
    await broker.broker.delete_topic(catalog.topics["u"])
    await broker.create_topic("u", 2, {"cleanup.policy": "compact"})
    await broker.create_topic("v", 1, {})
    await catalog.configure(catalog.topics["t"], lambda _: {"retention.ms": "5000000000"})
    await broker.broker.producer_ids.take()
    await broker.stop()
    with single(folder) as node:
        expected = node.image
    assert expected is not None and expected.topics.keys() == {"t", "u", "v"}
    await moved(folder, zookeeper)
    assert_done(folder, await image_in(zookeeper), expected)


async def test_the_role_that_a_killed_run_holds_is_waited_for(zookeeper: str, folder: Path) -> None:
    with single(folder) as node:
        whose = node.move
    killed = await opened(zookeeper)
    await begin(killed, whose)
    await killed.create(paths.CONTROLLER, encode_controller(NODE, 0), ephemeral=True)
    moving_on = asyncio.ensure_future(moved(folder, zookeeper))
    session = await opened(zookeeper)
    while await session.find(paths.CONTROLLER_EPOCH) is None:  # noqa: ASYNC110 (nothing tells)
        await asyncio.sleep(0.005)  # until the new run waits to be elected
    assert not moving_on.done()
    await killed.close()
    assert await moving_on is Standing.BEGUN
    await session.close()


# What is refused, and nothing is changed then


async def refused(folder: Path, zookeeper: str, error: type[Exception], *texts: str) -> None:
    journal = journal_of(folder)
    with pytest.raises(error) as raised:
        await moved(folder, zookeeper)
    for text in texts:
        assert text in str(raised.value)
    assert journal_of(folder) == journal


async def test_a_chroot_of_others_is_refused(zookeeper: str, folder: Path) -> None:
    session = await opened(f"{zookeeper}/topics")
    await session.ensure([f"{paths.TOPICS}/old"])
    await session.close()
    await refused(folder, f"{zookeeper}/topics", ChrootTaken, "1 topics", "empty chroot")
    session = await opened(f"{zookeeper}/other")
    await session.ensure(["/cluster"])
    await session.create(paths.CLUSTER_ID, b'{"version":"1","id":"someone"}')
    await session.close()
    await refused(folder, f"{zookeeper}/other", ChrootTaken, "of cluster someone", "empty chroot")
    session = await opened(f"{zookeeper}/begun")
    await begin(session, MoveZnode("someone", 9))
    await session.close()
    await refused(folder, f"{zookeeper}/begun", ChrootTaken, "broker 9 of cluster someone")


async def test_a_chroot_that_was_moved_to_takes_no_older_journal(zookeeper: str, folder: Path) -> None:
    older = copied(folder, folder.parent / "older")
    await moved(folder, zookeeper)
    await refused(older, zookeeper, ChrootTaken, "was moved there before")
    with single(folder) as node:
        assert await look(node, settings(f"{zookeeper}/elsewhere")) is Standing.EMPTY
    with pytest.raises(StorageError, match=f"in ZooKeeper already, at .*{zookeeper[-8:]}"):
        await moved(folder, f"{zookeeper}/elsewhere")


async def test_folders_that_are_not_in_order_are_refused(
    zookeeper: str, filled: Path, tmp_path: Path
) -> None:
    unclean = copied(filled, tmp_path / "unclean")
    (unclean / "b" / CLEAN_SHUTDOWN).unlink()
    await refused(unclean, zookeeper, StorageError, "not closed cleanly", "start the broker by itself")
    lacking = copied(filled, tmp_path / "lacking")
    (log,) = lacking.glob("*/t-2")
    log.rename(tmp_path / "away")
    await refused(lacking, zookeeper, StorageError, "t-2 has a log in none of log.dirs")
    unknown = copied(filled, tmp_path / "found")
    (unknown / "a" / "other-0").mkdir()
    await refused(unknown, zookeeper, StorageError, "other-0", "never seen this log")
    mixed = copied(filled, tmp_path / "mixed")
    (log,) = mixed.glob("*/t-0")
    (log / PARTITION_METADATA).write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    await refused(mixed, zookeeper, StorageError, "t-0", "another topic id", "delete partition.metadata")
    running = copied(filled, tmp_path / "running")
    broker = standalone(running)
    await broker.start()
    with pytest.raises(StorageError, match="stop the broker first"):
        await moved(running, zookeeper)
    await broker.stop()
    new = tmp_path / "new"
    with pytest.raises(StorageError, match="is not there"):
        single(new).__enter__()
    (new / "a").mkdir(parents=True)
    (new / "b").mkdir()
    with pytest.raises(StorageError, match="nothing to move"):
        single(new).__enter__()


# Starting it the wrong way


async def test_a_broker_that_was_moved_does_not_start_by_itself(zookeeper: str, folder: Path) -> None:
    await moved(folder, zookeeper)
    with pytest.raises(StorageError, match=f"start the broker with zookeeper.connect=.*{zookeeper[-8:]}"):
        await standalone(folder).start()
    assert journal_of(folder) is None


async def test_a_broker_of_a_cluster_does_not_start_by_itself(zookeeper: str, tmp_path: Path) -> None:
    """Brokers of a cluster refuse to start standalone.

    One did start, took in all topics with default settings, and could not come back to its cluster.
    """
    broker = clustered(tmp_path, zookeeper)
    await broker.start()
    await broker.stop()
    with pytest.raises(StorageError, match="metadata is in ZooKeeper: start the broker with"):
        await standalone(tmp_path).start()
    assert not list(tmp_path.glob(f"*/{FILE_NAME}"))
    again = clustered(tmp_path, zookeeper)
    await again.start()
    await again.stop()


async def test_a_broker_by_itself_joins_no_cluster_before_it_is_moved(zookeeper: str, folder: Path) -> None:
    """Standalone brokers join no cluster before their move, and do not make the chroot another cluster's."""
    with pytest.raises(StorageError, match="millstream cluster move-to-zookeeper"):
        await clustered(folder, zookeeper).start()
    assert await moved(folder, zookeeper) is Standing.EMPTY


async def test_no_broker_starts_where_a_move_is_not_finished(zookeeper: str, tmp_path: Path) -> None:
    session = await opened(zookeeper)
    await begin(session, MoveZnode("someone", 9))
    with pytest.raises(UnfinishedMove, match="the move of broker 9 to"):
        await clustered(tmp_path, zookeeper).start()
    assert await session.find_children(paths.BROKER_IDS) == []
    await session.close()


async def test_brokers_that_run_are_to_be_stopped_first(zookeeper: str, folder: Path) -> None:
    with single(folder) as node:
        whose = node.move
    session = await opened(zookeeper)
    await begin(session, whose)
    await session.create(f"{paths.BROKER_IDS}/2", b"{}", ephemeral=True)
    await refused(folder, zookeeper, ChrootTaken, "stop what runs on it first: 2")
    await session.close()
    assert await moved(folder, zookeeper) is Standing.BEGUN
