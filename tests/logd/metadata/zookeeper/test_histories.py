"""Random histories of two controllers behind connections that end at random.

Faults: a multi that does not arrive, one whose answer does not, all connections cut in the middle of a write,
a takeover. What is written must be there once, in order, and nothing once a newer controller has loaded.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from typing import Any

import pytest

from logd.metadata.image import Change
from logd.metadata.zookeeper.cluster import prepare
from logd.metadata.zookeeper.election import Elected, elect
from logd.metadata.zookeeper.errors import ControllerMoved
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.store import ZooKeeperStore
from logd.metadata.zookeeper.znodes import paths
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.proxy import MULTI, Proxy
from tests.logd.metadata.zookeeper.sessions import opened, through
from tests.support.depth import deep, seeds

STEPS = 40
TOPICS = 4


class Model:
    """The changes that build the image, as they are loaded, and the number of notifications of changed
    settings.
    """

    def __init__(self) -> None:
        self.topics: dict[str, Change] = {}
        self.partitions: dict[tuple[str, int], Change] = {}
        self.brokers: dict[str, Change] = {}
        self.next_producer_id = 0
        self.notifications = 0

    def apply(self, change: Change) -> None:
        match change["type"]:
            case "topic":
                before = self.topics.get(change["name"])
                self.notifications += before is not None and before["configs"] != change["configs"]
                self.topics[change["name"]] = change
            case "topic-deleted":
                del self.topics[change["name"]]
                self.partitions = {
                    key: state for key, state in self.partitions.items() if key[0] != change["name"]
                }
            case "partition":
                self.partitions[change["topic"], change["partition"]] = change
            case "broker-configs":
                before = self.brokers.get(change["broker"])
                self.notifications += before is None or before["configs"] != change["configs"]
                self.brokers[change["broker"]] = change
            case "producer-ids":
                self.next_producer_id = change["next"]

    def loaded(self) -> list[Change]:
        brokers = sorted(self.brokers.values(), key=lambda each: each["broker"] or "<")
        return [
            *(self.topics[name] for name in sorted(self.topics)),
            *(self.partitions[key] for key in sorted(self.partitions)),
            *brokers,
            {"type": "producer-ids", "next": self.next_producer_id},
        ]


class History:
    def __init__(self, chance: random.Random, model: Model) -> None:
        self.chance = chance
        self.model = model
        self.numbers = 0

    def step(self) -> list[Change]:
        """Changes of one decision."""
        name = f"topic-{self.chance.randrange(TOPICS)}"
        topic = self.model.topics.get(name)
        if topic is None:
            return self._created(name)
        return self.chance.choice(
            (self._moved, self._moved, self._moved, self._grown, self._set, self._deleted, self._others)
        )(topic)

    def _created(self, name: str) -> list[Change]:
        self.numbers += 1
        count = self.chance.randint(1, 5)
        topic_id = self.numbers.to_bytes(16, "big").hex()
        topic = {"type": "topic", "name": name, "id": topic_id, "partitions": count, "configs": {}}
        return [topic, *(self._first(name, index) for index in range(count))]

    def _first(self, name: str, index: int) -> Change:
        replicas = self.chance.sample(range(1, 6), 3)
        return {
            "type": "partition",
            "topic": name,
            "partition": index,
            "replicas": replicas,
            "isr": replicas,
            "leader": replicas[0],
            "leader_epoch": 0,
            "partition_epoch": 0,
            "adding": [],
            "removing": [],
        }

    def _moved(self, topic: Change) -> list[Change]:
        indexes = self.chance.sample(range(topic["partitions"]), self.chance.randint(1, topic["partitions"]))
        return [self._next(topic["name"], index) for index in indexes]

    def _next(self, name: str, index: int) -> Change:
        before = self.model.partitions[name, index]
        after = before | {"partition_epoch": before["partition_epoch"] + 1}
        if self.chance.random() < 0.3:
            added = self.chance.choice([each for each in range(1, 9) if each not in before["replicas"]])
            after |= {"replicas": [*before["replicas"], added], "adding": [added]}
        else:
            isr = self.chance.sample(before["replicas"], self.chance.randint(1, len(before["replicas"])))
            after |= {"isr": isr, "leader": isr[0], "leader_epoch": before["leader_epoch"] + 1}
        return after

    def _grown(self, topic: Change) -> list[Change]:
        count = topic["partitions"] + self.chance.randint(1, 3)
        new = [self._first(topic["name"], index) for index in range(topic["partitions"], count)]
        return [topic | {"partitions": count}, *new]

    def _set(self, topic: Change) -> list[Change]:
        return [topic | {"configs": {"retention.ms": str(self.chance.randrange(3))}}]

    def _deleted(self, topic: Change) -> list[Change]:
        deleted = {"type": "topic-deleted", "name": topic["name"]}
        return [deleted, *(self._created(topic["name"]) if self.chance.random() < 0.5 else [])]

    def _others(self, _: Change) -> list[Change]:
        broker = {"type": "broker-configs", "broker": self.chance.choice(["", "1"])}
        return [
            broker | {"configs": {"log.cleaner.threads": str(self.chance.randrange(3))}},
            {"type": "producer-ids", "next": self.model.next_producer_id + 1000},
        ]


class Controller:
    def __init__(self, session: Session, elected: Elected) -> None:
        self.session = session
        self.store = ZooKeeperStore(session, elected)


@deep
@pytest.mark.parametrize("seed", seeds(5))
def test_histories(connect: str, ensemble: Ensemble, seed: int) -> None:
    chance = random.Random(seed)
    model = Model()
    history = History(chance, model)

    async def faulty(proxy: Proxy, work: Any) -> None:
        """Carry it out, with at most one fault in the middle."""
        fault = chance.random()
        if fault < 0.4:
            proxy.lose(MULTI, before=fault < 0.2)
            await work
        elif fault < 0.6:
            writing = asyncio.ensure_future(work)
            await asyncio.sleep(chance.random() * 0.01)
            proxy.cut()
            await writing
        else:
            await work

    async def main() -> None:
        async with AsyncExitStack() as stack:
            proxy = await stack.enter_async_context(Proxy(ensemble.connect_string))
            address = through(proxy, connect)
            operator = await stack.enter_async_context(opened(connect))
            sessions = [await stack.enter_async_context(opened(address)) for _ in range(2)]
            await prepare(sessions[0])
            controller: Controller | None = None
            for _ in range(STEPS):
                if controller is None or chance.random() < 0.1:
                    older, controller = controller, await take_over(sessions, operator)
                    assert await controller.store.load() == model.loaded()
                    if older is not None:
                        with pytest.raises(ControllerMoved):
                            # Whatever it decides, and something that is always to be written.
                            ids = {"type": "producer-ids", "next": model.next_producer_id + 1000}
                            await faulty(proxy, older.store.write([*history.step(), ids]))
                changes = history.step()
                await faulty(proxy, controller.store.write(changes))
                for change in changes:
                    model.apply(change)
            controller = await take_over(sessions, operator)
            assert await controller.store.load() == model.loaded()
            assert len(await sessions[0].children(paths.CONFIG_CHANGES)) == model.notifications

    async def take_over(sessions: list[Session], operator: Session) -> Controller:
        session = chance.choice(sessions)
        if await operator.exists(paths.CONTROLLER) is not None:
            await operator.delete(paths.CONTROLLER)
        while (elected := await elect(session, 1, 0)) is None:
            await session.connected()
        return Controller(session, elected)

    asyncio.run(main())
