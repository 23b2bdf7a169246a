"""A bench for exactly-once source tasks: a broker, a topic, a store of offsets, and fencing for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from connect.distributed import DistributedConfig
from connect.errors import ConnectError
from connect.runtime.exactly_once_batch_task import exactly_once_task
from connect.runtime.exactly_once_task import ExactlyOnceSourceTask
from connect.runtime.states import State
from connect.runtime.task import TaskSetting
from connect.stores import OffsetTopics
from kafka_client import Admin, BatchFetcher, Client

SECONDS = 60.0


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


class Fencing:
    """Lets every task start, or none."""

    refusal: ConnectError | None = None

    def transactional_id(self, connector: str, task: int) -> str:
        return f"group-{connector}-{task}"

    async def fence(self, connector: str) -> int | None:
        return 7

    async def check(self, connector: str, task: int, generation: int | None) -> None:
        assert generation == 7
        if self.refusal is not None:
            raise self.refusal


class Bench:
    """A broker, a topic, a store of offsets, and tasks on them."""

    def __init__(self, client: Client, store: OffsetTopics, topic: str) -> None:
        self.client, self.store, self.topic = client, store, topic
        self.fencing = Fencing()

    def task(self, plugin: Any, **settings: str) -> ExactlyOnceSourceTask:
        plugin.topic = self.topic
        connector = {"name": self.topic, "connector.class": "c"}
        connector |= {key.replace("_", "."): value for key, value in settings.items()}
        setting = TaskSetting(
            connector=self.topic,
            task_id=0,
            config={},
            connector_config=connector,
            worker=worker(),
            client=self.client,
            admin=Admin(self.client),
        )
        task = exactly_once_task(setting, plugin, self.store.of(None), self.fencing, on_change=lambda: None)
        task.launch()
        return task

    async def done(self, plugin: Any, **settings: str) -> ExactlyOnceSourceTask:
        task = self.task(plugin, **settings)
        await until(lambda: task.is_done or task.status.state is State.FAILED)
        assert task.status.state is not State.FAILED, task.status.trace
        await task.stop()
        return task

    async def read(self, isolation: Any = "read_committed") -> list[int]:
        tps = (await self.client.metadata([self.topic])).partitions([self.topic])
        ends = await Admin(self.client).list_offsets(dict.fromkeys(tps, "latest"), isolation_level=isolation)
        values: list[int] = []
        async with BatchFetcher(
            self.client, auto_offset_reset="earliest", isolation_level=isolation
        ) as fetcher:
            fetcher.assign(dict.fromkeys(tps, 0))
            while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
                for fetched in await fetcher.fetch(timeout_ms=500):
                    values += [int(r[3] or b"") for r in fetched.records()]
        return values

    async def offset(self) -> Any:
        store = self.store.of(None)
        await store.refresh()
        return store.get(b'["%s",{"s":1}]' % self.topic.encode())


def worker() -> DistributedConfig:
    topics = {f"{kind}.storage.topic": f"eos-{kind}" for kind in ("config", "offset", "status")}
    return DistributedConfig.parse(
        {
            "group.id": "g",
            "exactly.once.source.support": "enabled",
            "value.converter": "json",
            "value.converter.schemas.enable": "false",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "1",
            "offset.flush.interval.ms": "50",
            **topics,
        }
    )
