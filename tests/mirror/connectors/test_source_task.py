"""MirrorSourceTask without clusters: offsets of batches that are left out, and of polls that fail."""

from contextlib import AsyncExitStack

import pytest

from connect.api import SourceTaskContext
from kafka_client import Fetched, TopicPartition
from kafka_client.records import build_batch
from mirror.connectors import source_task
from mirror.connectors.source_task import MirrorSourceTask
from mirror.errors import NotFetched

CONFIG = {
    "source.cluster.alias": "dc1",
    "target.cluster.alias": "dc2",
    "source.cluster.bootstrap.servers": "none:1",
    "target.cluster.bootstrap.servers": "none:2",
    "emit.offset-syncs.enabled": "false",
    "task.assigned.partitions": "t-0,t-1",
}
MARKER_KEY = bytes([0, 0, 0, 1])
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Clients:
    source = target = None

    def __init__(self, *_):
        self.exits = AsyncExitStack()

    async def open(self):
        pass

    close = open


class Fetcher:
    """A fetcher that returns the test's answers, one for each call."""

    def __init__(self, *_, **__):
        self.answers = []
        self.positions = {}

    def add(self, tp, position):
        self.positions[tp] = position

    async def fetch(self, **_):
        return self.answers.pop(0)

    async def close(self):
        pass


class Offsets:
    def offset(self, partition):
        return {"offset": 4} if partition["partition"] == 0 else None


def fetched(tp, position, *batches):
    """Return an answer with batches: `records` one record each, "marker", or "damaged"."""
    data, offset = b"", position
    for kind in batches:
        key, value = (MARKER_KEY, bytes(6)) if kind == "marker" else (b"k", b"v")
        batch = build_batch([(0, key, value, ())], base_offset=offset, control=kind == "marker")
        data += batch[:-1] + b"\xff" if kind == "damaged" else batch
        offset += 1
    return Fetched(tp, position, offset, memoryview(data), committed_only=True)


@pytest.fixture
async def task(monkeypatch):
    monkeypatch.setattr(source_task, "FlowClients", Clients)
    fetcher = Fetcher()
    monkeypatch.setattr(source_task, "BatchFetcher", lambda *_, **__: fetcher)
    task = MirrorSourceTask()
    task.context = SourceTaskContext(connector="m", task_id=0, offsets=Offsets())
    await task.start(CONFIG)
    assert fetcher.positions == {T0: 5, T1: -2}
    task.answers = fetcher.answers
    yield task
    await task.stop()


def offsets(task):
    return {partition["partition"]: offset["offset"] for partition, offset in task.update_offsets()}


async def test_offsets_after_markers_are_committed_without_records(task):
    task.answers += [[fetched(T0, 5, "records", "marker"), fetched(T1, 0, "marker", "records")], []]
    assert [(b.partition, b.source_offset["offset"]) for b in await task.poll()] == [(0, 5), (1, 1)]
    assert await task.poll() == []
    assert offsets(task) == {0: 6}
    assert offsets(task) == {}


async def test_a_later_batch_takes_the_place_of_offsets_that_were_left_out(task):
    task.answers += [[fetched(T0, 5, "marker")], [fetched(T0, 6, "records")]]
    assert await task.poll() == []
    assert len(await task.poll()) == 1
    assert offsets(task) == {}


async def test_a_poll_that_fails_commits_nothing(task):
    """The worker never got the batches of partition 0, but committed offsets after them: they were lost."""
    task.answers.append([fetched(T0, 5, "records", "marker"), fetched(T1, 0, "damaged")])
    with pytest.raises(NotFetched, match=r"t-1.*skip\.unreadable\.batches"):
        await task.poll()
    assert offsets(task) == {}
