"""Doubles for what a task meets: the producer, the consumer, client and admin; and a task with them."""

import asyncio
from types import SimpleNamespace

import pytest

from connect.runtime import State, WorkerConfig
from connect.runtime.task import TaskSetting
from connect.testing import MemoryOffsetStore
from kafka_client import ListedOffset, PartitionMetadata, TopicMetadata
from kafka_client.fetcher.parts import Part
from kafka_client.records.partitioning import split_by_partition

SECONDS = 60.0


async def _until(condition) -> None:
    """Wait until a condition holds; TimeoutError if it does not come."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


class FakeProducer:
    """Records what is sent; acknowledges when told, or at once with `acking`."""

    acking = True
    refuse: Exception | None = None

    def __init__(self, client, **arguments) -> None:
        self.arguments = arguments
        self.sent: list[tuple[str, int, list]] = []
        self.futures: list[asyncio.Future] = []
        client.producers.append(self)

    async def start(self):
        return self

    async def send(self, topic, partition, records):
        future = asyncio.get_running_loop().create_future()
        self.sent.append((topic, partition, list(records)))
        self.futures.append(future)
        if self.refuse is not None:
            future.set_exception(self.refuse)
        elif self.acking:
            future.set_result(0)
        return future

    def partition_for(self, topic, key, count):
        return 0

    def partitioned(self, topic, records, count):
        return split_by_partition(records, count, lambda: 0)

    async def flush(self):
        if self.futures:
            await asyncio.wait(self.futures)

    async def close(self, *, timeout_ms=None):
        for future in self.futures:
            if not future.done():
                future.cancel()

    @property
    def values(self):
        return [record[2] for _, _, records in self.sent for record in records]


class FakeClient:
    """Knows some topics; remembers the producers made on it."""

    def __init__(self) -> None:
        self.producers: list[FakeProducer] = []
        self.topics = {"t": 2, "u": 1}
        self.internal: set[str] = set()

    async def topic(self, name):
        partitions = {p: PartitionMetadata(p, leader=1) for p in range(self.topics[name])}
        return TopicMetadata(name, name.encode().ljust(16, b"."), partitions, name in self.internal)

    async def metadata(self, topics=None, **_):
        names = [t for t in (self.topics if topics is None else topics) if t in self.topics]
        return SimpleNamespace(topics={t: await self.topic(t) for t in names})


class FakeAdmin:
    """Topics of a FakeClient, with ends and group offsets to be set."""

    def __init__(self, client) -> None:
        self._client = client
        self.created = []
        self.ends: dict = {}
        self.committed: dict = {}
        self.refuse: Exception | None = None

    async def list_topics(self):
        return (await self._client.metadata()).topics

    async def create_topics(self, topics, **_):
        for topic in topics:
            self.created.append(topic)
            self._client.topics[topic.name] = topic.num_partitions

    async def list_offsets(self, specs, **_):
        if self.refuse is not None:
            refuse, self.refuse = self.refuse, None
            raise refuse
        return {
            tp: ListedOffset(self.ends.get(tp, 0) if spec == "latest" else 0) for tp, spec in specs.items()
        }

    async def alter_group_offsets(self, group, offsets):
        self.committed.setdefault(group, {}).update(offsets)


class TaskHarness:
    """Everything a worker task needs, in memory."""

    until = staticmethod(_until)

    def __init__(self) -> None:
        self.client = FakeClient()
        self.admin = FakeAdmin(self.client)
        self.store = MemoryOffsetStore()
        self.worker = {
            "key.converter": "string",
            "value.converter": "json",
            "value.converter.schemas.enable": "false",
            "offset.flush.interval.ms": "5",
        }

    def setting(self, **config: str) -> TaskSetting:
        raw = {"name": "c", "connector.class": "x"} | {k.replace("_", "."): v for k, v in config.items()}
        return TaskSetting(
            connector="c",
            task_id=0,
            config=raw,
            connector_config=raw,
            worker=WorkerConfig.parse(self.worker),
            client=self.client,
            admin=self.admin,
        )

    async def in_state(self, task, state: State) -> None:
        await _until(lambda: task.status.state is state)


@pytest.fixture
def harness() -> TaskHarness:
    return TaskHarness()


@pytest.fixture
def fake_producer(monkeypatch) -> type[FakeProducer]:
    fake = type("Producer", (FakeProducer,), {})
    monkeypatch.setattr("connect.runtime.source_task.BatchProducer", fake)
    return fake


class FakeFetched:
    """Records of one partition, as Fetched gives them."""

    topic_id = bytes(range(16))

    def __init__(self, tp, position, values) -> None:
        self.tp = tp
        self.position = position
        self.next_offset = position + len(values)
        self._values = values

    def parts(self, max_records, *, on_unreadable=None):
        records = [(self.position + i, 0, b"k", v, ()) for i, v in enumerate(self._values)]
        for start in range(0, len(records), max_records):
            part = records[start : start + max_records]
            yield Part(part, part[-1][0] + 1, 0)


class FakeConsumer:
    """Partitions of which the test says when they come, go and have records."""

    def __init__(self, client, group_id, **arguments) -> None:
        self.group_id = group_id
        self.arguments = arguments
        self.logs: dict = {}
        self.positions: dict = {}
        self.committed_offsets: dict = {}
        self.commits: list = []
        self.refuse_commit: Exception | None = None
        self.thrown_out: Exception | None = None
        self.confirms = 0
        self.seeks: list = []
        self.per_fetch = 3
        self.parts = 2
        self._wake = asyncio.Event()
        client.consumers.append(self)

    async def subscribe(self, topics, *, on_assigned, on_revoked, on_lost):
        self.topics = topics
        self.on_assigned, self.on_revoked, self.on_lost = on_assigned, on_revoked, on_lost

    async def assign(self, *tps):
        for tp in tps:
            self.positions[tp] = self.committed_offsets.get(tp, -2)
        await self.on_assigned(set(tps))
        self._wake.set()

    async def revoke(self, *tps, lost=False):
        await (self.on_lost if lost else self.on_revoked)(set(tps))
        for tp in tps:
            self.positions.pop(tp, None)

    def write(self, tp, *values):
        self.logs.setdefault(tp, []).extend(values)
        self._wake.set()

    def position(self, tp):
        return self.positions[tp]

    def seek(self, tp, offset):
        self.seeks.append((tp, offset))
        self.positions[tp] = offset
        self._wake.set()

    def _ready(self):
        fetched = []
        for tp, position in self.positions.items():
            start = max(position, 0)
            for _ in range(self.parts):  # several: one is put while the others are in hand
                values = self.logs.get(tp, [])[start : start + self.per_fetch]
                if values:
                    fetched.append(FakeFetched(tp, start, values))
                    start += len(values)
            self.positions[tp] = start if start > max(position, 0) else position
        return fetched

    async def fetch(self, *, timeout_ms, max_bytes=None):
        ready = self._ready()
        if not ready:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), timeout_ms / 1000)
            except TimeoutError:
                return []
            ready = self._ready()
        return ready

    async def confirm(self):
        self.confirms += 1
        if self.thrown_out is not None:
            raise self.thrown_out

    async def commit(self, offsets):
        if self.refuse_commit is not None:
            raise self.refuse_commit
        self.committed_offsets.update(offsets)
        self.commits.append(dict(offsets))

    async def close(self):
        if self.positions:
            await self.revoke(*list(self.positions))


@pytest.fixture
def fake_consumer(monkeypatch, harness):
    harness.client.consumers = []
    monkeypatch.setattr("connect.runtime.sink_task.Consumer", FakeConsumer)
    return FakeConsumer
