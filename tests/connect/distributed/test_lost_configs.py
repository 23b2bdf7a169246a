"""The way of lost configs from a leader's memory back into the config topic."""

from __future__ import annotations

import asyncio

import pytest

from connect.distributed import lost_configs
from connect.distributed.lost_configs import LostConfigs
from connect.herder import Herder, TargetState
from connect.stores import ConfigRecord
from tests.support.waiting import until

SESSION_KEY: ConfigRecord = (
    "session-key",
    {"key": "AAAA", "algorithm": "HmacSHA256", "creation-timestamp": 1},
)


class Topic:
    """A config topic in memory, as one worker sees it."""

    def __init__(self, *, is_leader: bool = True) -> None:
        self.records: list[ConfigRecord] = []
        self.herder = Herder()
        self.is_leader = is_leader
        self.lock = asyncio.Lock()
        self.lost = LostConfigs(
            self.herder,
            is_leader=lambda: self.is_leader,
            read_to_end=self.read_to_end,
            write=self.write,
            lock=self.lock,
        )

    async def read_to_end(self) -> None:
        await asyncio.sleep(0)

    async def write(self, records) -> None:
        self.records += records
        self.read(records)

    def read(self, records) -> None:
        self.herder.read(records)
        self.lost.note(records)

    def lose(self, count: int) -> None:
        """Lose the oldest records, and read the others again."""
        self.records = self.records[count:]
        self.lost.note_loss()
        self.read(self.records)


@pytest.fixture
def topic(monkeypatch) -> Topic:
    monkeypatch.setattr(lost_configs, "RETRY_SECONDS", 0)
    return Topic()


async def fill(topic: Topic) -> None:
    herder = topic.herder
    await topic.write([SESSION_KEY])
    await topic.write(herder.put_connector("a", {"name": "a"}))
    await topic.write(herder.put_plan("a", [{"n": "0"}, {"n": "1"}]))
    await topic.write(herder.set_target("a", TargetState.PAUSED))
    await topic.write(herder.put_connector("fenced", {"name": "fenced"}))
    await topic.write(herder.put_plan("fenced", [{"n": "0"}]))
    await topic.write([("tasks-fencing-fenced", {"task-count": 1})])
    await topic.write(herder.put_connector("pending", {"name": "pending"}))
    await topic.write([("tasks-fencing-pending", {"task-count": 4})])
    await topic.write(herder.put_plan("pending", [{"n": "0"}]))
    await topic.write(herder.put_connector("gone", {"name": "gone"}))
    await topic.write(herder.delete_connector("gone"))


def summary(herder: Herder) -> object:
    config = herder.config
    return config.session_key, {
        name: (herder.runs(name), config.fenced_task_count(name), config.is_pending_fencing(name))
        for name in sorted(config.connectors)
    }


@pytest.mark.parametrize("count", range(0, 22, 3))
async def test_the_leader_writes_again_what_a_new_worker_would_lack(topic: Topic, count: int):
    """However many records are lost, a worker that starts afterwards reads what this one has in memory."""
    await fill(topic)
    before = summary(topic.herder)
    topic.lose(count)
    assert summary(topic.herder)[1].keys() == before[1].keys(), "an emptied topic deletes no connector"
    running = asyncio.create_task(topic.lost.run())
    await until(lambda: topic.lost.problem() is None and not topic.lost.is_open)
    running.cancel()
    later = Herder()
    later.read(topic.records)
    assert summary(later) == summary(topic.herder) == before


async def test_a_follower_writes_nothing_and_names_what_only_its_memory_has(topic: Topic):
    await fill(topic)
    topic.is_leader = False
    topic.lose(len(topic.records))
    running = asyncio.create_task(topic.lost.run())
    for _ in range(20):
        await asyncio.sleep(0)
    assert topic.records == []
    assert "3 connectors in memory that are not in the topic as they should be: a, fenced, pending" in str(
        topic.lost.problem()
    )
    topic.is_leader = True
    await until(lambda: not topic.lost.is_open)
    running.cancel()
    assert topic.lost.problem() is None


async def test_a_connector_that_is_deleted_meanwhile_does_not_come_back(topic: Topic):
    await fill(topic)
    topic.lose(len(topic.records))
    async with topic.lock:
        running = asyncio.create_task(topic.lost.run())
        for _ in range(20):
            await asyncio.sleep(0)
        await topic.write(topic.herder.delete_connector("a"))
    await until(lambda: not topic.lost.is_open)
    running.cancel()
    later = Herder()
    later.read(topic.records)
    assert sorted(later.config.connectors) == ["fenced", "pending"]
