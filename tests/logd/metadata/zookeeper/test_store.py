"""Changes written as Kafka's znodes and loaded again; interrupted, fenced, lost on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafka_client.acl import AclEntry, Operation, PatternType, Permission, ResourcePattern, ResourceType
from logd.metadata.acls import acls_change
from logd.metadata.image import Change
from logd.metadata.zookeeper import batches
from logd.metadata.zookeeper.batches import BATCH_BYTES_MAX, OPERATION_BYTES_MAX
from logd.metadata.zookeeper.cluster import prepare
from logd.metadata.zookeeper.election import Elected, elect
from logd.metadata.zookeeper.errors import BadVersion, BadZnode, ControllerMoved, NodeExists, ZooKeeperError
from logd.metadata.zookeeper.session.operations import Create, SetData
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.store import ZooKeeperStore
from logd.metadata.zookeeper.znodes import paths
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.proxy import MULTI, Proxy
from tests.logd.metadata.zookeeper.sessions import SHORT_MS, opened, through, wait_until_gone
from tests.support.depth import deep

NOW_MS = 1_700_000_000_000
ID, OTHER_ID = bytes(range(1, 17)), bytes(range(2, 18))


def topic(name: str = "t", partitions: int = 1, topic_id: bytes = ID, **configs: str) -> Change:
    return {"type": "topic", "name": name, "id": topic_id.hex(), "partitions": partitions, "configs": configs}


def partition(index: int = 0, epoch: int = 0, *, name: str = "t", **facts: Any) -> Change:
    return {
        "type": "partition",
        "topic": name,
        "partition": index,
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": epoch,
        "partition_epoch": epoch,
        "adding": [],
        "removing": [],
    } | facts


def deleted(name: str = "t") -> Change:
    return {"type": "topic-deleted", "name": name}


def configs(broker: str, **settings: str) -> Change:
    return {"type": "broker-configs", "broker": broker, "configs": settings}


def producer_ids(following: int) -> Change:
    return {"type": "producer-ids", "next": following}


class Controller:
    """A session that is elected, and its store."""

    def __init__(self, session: Session, elected: Elected) -> None:
        self.session = session
        self.elected = elected
        self.store = ZooKeeperStore(session, elected)

    async def write(self, *changes: Change) -> None:
        await self.store.write(changes)

    async def loaded(self) -> list[Change]:
        """Return the changes that another controller would load."""
        return await ZooKeeperStore(self.session, self.elected).load()

    async def json(self, path: str) -> Any:
        return json.loads((await self.session.get(path))[0])


@asynccontextmanager
async def controlling(connect: str) -> AsyncIterator[Controller]:
    async with opened(connect) as session:
        elected = await elect(session, 1, NOW_MS)
        assert elected is not None
        controller = Controller(session, elected)
        await prepare(session)
        await controller.store.load()
        yield controller


async def test_an_empty_cluster(connect: str) -> None:
    async with controlling(connect) as controller:
        assert await controller.loaded() == [producer_ids(0)]
        for path in paths.PERSISTENT:
            assert await controller.session.exists(path) is not None


async def test_a_topics_life(connect: str) -> None:
    async with controlling(connect) as controller:
        session = controller.session
        created = [topic(partitions=2, **{"retention.ms": "1"}), partition(0), partition(1)]
        await controller.write(*created)
        assert await controller.loaded() == [*created, producer_ids(0)]
        assert (await controller.json(paths.topic("t")))["partitions"] == {"0": [1, 2], "1": [1, 2]}
        assert (await controller.json(paths.state("t", 1)))["controller_epoch"] == 1
        assert await session.children(paths.CONFIG_CHANGES) == [], "nobody knows it yet"

        moved = partition(
            1, 1, leader=2, isr=[2, 3], replicas=[2, 3, 1], adding=[3], removing=[1], leader_epoch=5
        )
        await controller.write(partition(0, 1, leader=-1, isr=[1]), moved)
        state = await controller.json(paths.topic("t"))
        assert state["adding_replicas"] == {"1": [3]}
        assert state["removing_replicas"] == {"1": [1]}
        assert (await session.get(paths.topic("t")))[1].version == 1
        assert (await session.get(paths.state("t", 1)))[1].version == 1

        grown = topic(partitions=3, **{"retention.ms": "1"})
        await controller.write(grown, partition(2), partition(0, 2))
        assert await controller.loaded() == [
            grown,
            partition(0, 2),
            moved,
            partition(2),
            producer_ids(0),
        ]
        assert await session.children(paths.CONFIG_CHANGES) == [], "its settings are as they were"
        await controller.write(topic(partitions=3, **{"retention.ms": "2"}))
        (notification,) = await session.children(paths.CONFIG_CHANGES)
        assert (await controller.json(f"{paths.CONFIG_CHANGES}/{notification}"))["entity_path"] == "topics/t"

        await controller.write(deleted())
        assert await controller.loaded() == [producer_ids(0)]
        assert await session.children("/config/topics") == []
        assert await session.children(paths.DELETE_TOPICS) == []
        again = [topic(topic_id=OTHER_ID), partition(0)]
        await controller.write(*again)
        assert await controller.loaded() == [*again, producer_ids(0)]
        await controller.write(deleted(), *again)
        assert await controller.loaded() == [*again, producer_ids(0)]


async def test_a_topic_that_somebody_wants_deleted(connect: str) -> None:
    async with controlling(connect) as controller:
        await controller.write(topic(), partition())
        await controller.session.create(paths.deletion("t"))
        await controller.write(deleted())
        assert await controller.loaded() == [producer_ids(0)]
        assert await controller.session.children(paths.DELETE_TOPICS) == []


@deep
@pytest.mark.parametrize("batch", [500, 20])
@pytest.mark.parametrize("is_made", [True, False])
def test_a_wish_that_comes_or_goes_while_the_topic_is_deleted(
    connect: str, monkeypatch: pytest.MonkeyPatch, is_made: bool, batch: int
) -> None:
    """Deletions end whatever an operator does. The operator creates or deletes the znode at each point of the
    controller's own deletion.
    """
    monkeypatch.setattr(batches, "BATCH_OPERATIONS_MAX", batch)
    path = paths.deletion("t")
    original = batches.fenced

    async def main(before: int) -> bool:
        """Delete a topic, and disturb it before batch number `before`. Return True if there were that many
        batches.
        """
        left = before

        async def disturbed(session: Session, *arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                if await session.exists(path) is None and is_made:
                    await session.create(path)
                elif await session.exists(path) is not None and not is_made:
                    await session.delete(path)
            return await original(session, *arguments)

        async with controlling(f"{connect}-{before}") as controller:
            await controller.write(topic(partitions=10), *(partition(index) for index in range(10)))
            if not is_made:
                await controller.session.create(path)
            monkeypatch.setattr(batches, "fenced", disturbed)
            await controller.write(deleted())
            monkeypatch.setattr(batches, "fenced", original)
            await controller.write(topic("u"), partition(name="u"))
            assert await controller.loaded() == [topic("u"), partition(name="u"), producer_ids(0)]
            assert await controller.session.children(paths.DELETE_TOPICS) == []
        return left <= 0

    before = 1
    while asyncio.run(main(before)):
        before += 1
    assert before > 1


async def test_settings_and_producer_ids(connect: str) -> None:
    async with controlling(connect) as controller:
        session = controller.session
        all_of = [configs("1", **{"log.cleaner.threads": "2"}), configs("", **{"log.retention.ms": "1"})]
        await controller.write(*all_of, producer_ids(1000))
        assert await controller.loaded() == [*all_of, producer_ids(1000)]
        assert (await controller.json("/config/brokers/<default>"))["config"] == {"log.retention.ms": "1"}
        assert len(await session.children(paths.CONFIG_CHANGES)) == 2
        assert await controller.json(paths.PRODUCER_ID_BLOCK) == {
            "version": 1,
            "broker": 1,
            "block_start": "0",
            "block_end": "999",
        }
        await controller.write(producer_ids(2000) | {"broker": 7}, configs("1"))
        assert (await controller.json(paths.PRODUCER_ID_BLOCK))["block_start"] == "1000"
        assert (await controller.json(paths.PRODUCER_ID_BLOCK))["broker"] == 7
        assert configs("1") in await controller.loaded()
        assert len(await session.children(paths.CONFIG_CHANGES)) == 3


async def test_acls(connect: str) -> None:
    alice = AclEntry("User:alice", "*", Operation.READ, Permission.ALLOW)
    bob = AclEntry("User:bob", "10.0.0.0/8", Operation.ALL, Permission.DENY)
    topics = ResourcePattern(ResourceType.TOPIC, PatternType.PREFIXED, "t-")
    every = ResourcePattern(ResourceType.GROUP, PatternType.LITERAL, "*")
    async with controlling(connect) as controller:
        await prepare(controller.session, with_acls=True)
        created = [acls_change(every, [bob]), acls_change(topics, [alice, bob])]
        await controller.write(*created)
        assert await controller.loaded() == [*created, producer_ids(0)]
        await controller.write(acls_change(topics, [bob]), acls_change(topics, [alice]))
        assert await controller.loaded() == [created[0], acls_change(topics, [alice]), producer_ids(0)]
        await controller.write(acls_change(topics, []), acls_change(topics, []), acls_change(every, [alice]))
        assert await controller.loaded() == [acls_change(every, [alice]), producer_ids(0)]
        assert await controller.session.children("/kafka-acl-extended/prefixed/Topic") == []
        assert len(await controller.session.children("/kafka-acl-changes")) == 2
        assert len(await controller.session.children("/kafka-acl-extended-changes")) == 4


async def test_what_is_nothing_to_write(connect: str) -> None:
    async with controlling(connect) as controller:
        departed = {"type": "broker-gone", "id": 1}
        offline = {"type": "replicas-offline", "broker": 1, "partitions": {}}
        await controller.write(departed, offline)
        with pytest.raises(AssertionError, match="no znode for a change of type new"):
            await controller.write({"type": "new"})


async def test_nothing_of_an_older_controller_is_written(connect: str) -> None:
    async with controlling(connect) as older:
        await older.write(topic(), partition())
        await older.session.delete(paths.CONTROLLER)
        async with controlling(connect) as newer:
            assert newer.elected.epoch == 2
            for changes in ([partition(0, 1)], [topic("u")], [deleted()], [producer_ids(1)]):
                with pytest.raises(ControllerMoved):
                    await older.write(*changes)
                with pytest.raises(AssertionError, match="load comes first"):
                    await older.write(*changes)
                await older.store.load()
            assert await newer.loaded() == [topic(), partition(), producer_ids(0)]
            await newer.write(partition(0, 1))
            assert (await newer.json(paths.state("t", 0)))["controller_epoch"] == 2


async def test_what_somebody_else_has_changed_is_not_written_over(connect: str) -> None:
    async with controlling(connect) as controller:
        await controller.write(topic(), partition())
        state = (await controller.session.get(paths.state("t", 0)))[0]
        await controller.session.set(paths.state("t", 0), state)
        with pytest.raises(BadVersion, match="partitions/0/state was changed by somebody"):
            await controller.write(partition(0, 1))
        assert (await controller.store.load())[1] == partition(0, 1, leader_epoch=0)
        await controller.write(partition(0, 2))
        await controller.session.create(paths.topic("u"))
        with pytest.raises(NodeExists, match="/brokers/topics/u already"):
            await controller.write(topic("u"), partition(name="u"))


STEPS: list[Sequence[Change]] = [
    [topic(partitions=2), partition(0), partition(1)],
    [partition(0, 1), partition(1, 1, isr=[1])],
    [topic(partitions=2, **{"retention.ms": "2"})],
    [configs("", a="1"), producer_ids(1000)],
    [partition(1, 2, replicas=[2, 1])],
    [deleted()],
]


@deep
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("step", range(len(STEPS)))
async def test_a_write_whose_answer_is_lost_is_made_once(
    connect: str, ensemble: Ensemble, step: int, before: bool
) -> None:
    async with (
        Proxy(ensemble.connect_string) as proxy,
        controlling(through(proxy, connect)) as controller,
    ):
        for changes in STEPS[:step]:
            await controller.write(*changes)
        proxy.lose(MULTI, before=before)
        await controller.write(*STEPS[step])
        assert proxy.has_lost
        async with controlling(connect + "-2") as other:
            for changes in STEPS[: step + 1]:
                await other.write(*changes)
            assert await controller.loaded() == await other.loaded()
            names = await other.session.children(paths.CONFIG_CHANGES)
            assert await controller.session.children(paths.CONFIG_CHANGES) == names


@deep
@pytest.mark.parametrize("has_moved", [True, False])
async def test_a_write_during_which_the_session_expires(
    connect: str, ensemble: Ensemble, has_moved: bool
) -> None:
    """Writes during which the session expires succeed, unless another controller was elected: the other one
    would not know of the write.
    """
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect), session_timeout_ms=SHORT_MS) as session,
    ):
        await prepare(session)
        elected = await elect(session, 1, NOW_MS)
        assert elected is not None
        store = ZooKeeperStore(session, elected)
        await store.load()
        proxy.lose(MULTI, before=True)
        proxy.is_open = False
        writing = asyncio.create_task(store.write([topic(), partition()]))
        await wait_until_gone(other, paths.CONTROLLER)
        assert not elected.lease.is_held(session.clock())
        newer = await elect(other, 2, NOW_MS) if has_moved else None
        proxy.is_open = True
        if newer is not None:
            with pytest.raises(ControllerMoved):
                await writing
            assert await ZooKeeperStore(other, newer).load() == [producer_ids(0)]
        else:
            await writing
            assert await ZooKeeperStore(other, elected).load() == [topic(), partition(), producer_ids(0)]


async def test_a_creation_that_was_interrupted(connect: str) -> None:
    """Creations that Kafka's controller left half done are completed. Its controller writes one level after
    the other.
    """
    async with controlling(connect) as controller:
        created = [topic(partitions=3), partition(0), partition(1), partition(2)]
        await controller.write(*created)
        await controller.session.delete(paths.state("t", 1))
        await controller.session.delete(paths.state("t", 2))
        await controller.session.delete(paths.partition("t", 2))
        unwritten = {"leader": -1, "leader_epoch": -1, "partition_epoch": -1}
        assert (await controller.store.load())[1:4] == [
            partition(0),
            partition(1) | unwritten,
            partition(2) | unwritten,
        ]
        await controller.write(partition(1), partition(2))
        assert (await controller.loaded())[:4] == created
        for index in range(3):
            await controller.session.delete(paths.state("t", index))
            await controller.session.delete(paths.partition("t", index))
        await controller.session.delete(paths.partitions("t"))
        assert [each["leader"] for each in (await controller.store.load())[1:4]] == [-1, -1, -1]
        await controller.write(*created[1:])
        assert (await controller.loaded())[:4] == created


async def test_a_topic_of_an_older_broker(connect: str) -> None:
    async with controlling(connect) as controller:
        await controller.session.create(paths.topic("t"), b'{"version":1,"partitions":{"0":[1,2]}}')
        loaded = await controller.store.load()
        assert loaded[0]["id"] == "00" * 16
        await controller.write(topic(), partition())
        assert await controller.loaded() == [topic(), partition(), producer_ids(0)]


async def test_what_cannot_be_acted_on_is_named(connect: str) -> None:
    async with controlling(connect) as controller:
        await controller.write(topic(), partition())
        await controller.session.set(paths.state("t", 0), b"{}")
        with pytest.raises(BadZnode, match=r"/brokers/topics/t/partitions/0/state is '{}'"):
            await controller.store.load()


async def test_many_changes_are_written_in_batches(
    connect: str, ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_OPERATIONS_MAX", 50)
    async with (
        Proxy(ensemble.connect_string) as proxy,
        controlling(through(proxy, connect)) as controller,
    ):
        created = [topic(partitions=200), *(partition(index) for index in range(200))]
        proxy.lose(MULTI, before=False)
        await controller.write(*created)
        await controller.write(*(partition(index, 1) for index in range(200)))
        assert len(await controller.loaded()) == 202
        await controller.write(deleted())
        assert await controller.loaded() == [producer_ids(0)]


def test_a_deletion_that_was_interrupted_is_remembered(connect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_OPERATIONS_MAX", 50)

    async def main() -> None:
        async with controlling(connect) as controller:
            await controller.write(topic(partitions=100), *(partition(index) for index in range(100)))
            written = 0

            async def fenced_later(*arguments: Any) -> Any:
                nonlocal written
                written += 1
                if written > 2:
                    raise ControllerMoved(1)
                return await original(*arguments)

            original = batches.fenced
            monkeypatch.setattr(batches, "fenced", fenced_later)
            with pytest.raises(ControllerMoved):
                await controller.write(deleted())
            monkeypatch.setattr(batches, "fenced", original)
            assert await controller.session.children(paths.DELETE_TOPICS) == ["t"]
            assert (await controller.store.load())[0] == topic(partitions=100)
            await controller.write(deleted())
            assert await controller.loaded() == [producer_ids(0)]
            assert await controller.session.children(paths.DELETE_TOPICS) == []

    asyncio.run(main())


def test_batches_are_within_their_bounds() -> None:
    few = [Create(f"/{number}", b"x" * 1000) for number in range(2000)]
    for batch in batches.batches(few):
        assert sum(len(each.data) for each in batch if isinstance(each, Create)) < BATCH_BYTES_MAX
    assert [each for batch in batches.batches(few) for each in batch] == few
    assert [len(batch) for batch in batches.batches([Create("/x")] * 1001)] == [500, 500, 1]
    large = SetData("/t", b"x" * OPERATION_BYTES_MAX)
    with pytest.raises(ZooKeeperError, match=r"/t would have .* have fewer partitions in the topic"):
        list(batches.batches([large]))
