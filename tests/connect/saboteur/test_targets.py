"""Targets that are slow or full for longer than a consumer may wait between two fetches: nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client, Consumer, NewTopic, Producer
from tests.connect.saboteur.targets import Target
from tests.support.connect_group import ConnectGroup
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

PARTITIONS = 2
LARGE_BYTES, LARGE_COUNT = 500_000, 160
"""Records of 80 MB, far more than a task may hold."""
HELD_BYTES = 50_000_000
QUICK = {
    "consumer.override.max.poll.interval.ms": "1000",
    "consumer.override.session.timeout.ms": "1000",
    "consumer.override.heartbeat.interval.ms": "100",
    "consumer.override.fetch.max.bytes": "2000000",
    "consumer.override.max.partition.fetch.bytes": "1000000",
    "consumer.override.metadata.max.age.ms": "500",
}


@pytest.fixture
def group(logd: LogdProcess, tmp_path: Path) -> Iterator[ConnectGroup]:
    group = ConnectGroup(logd.bootstrap, tmp_path)
    yield group
    for url in list(group.workers):
        group.end(url)


class Pipeline:
    """A worker with two sinks of one topic: one whose target does harm, and another."""

    def __init__(self, group: ConnectGroup, folder: Path) -> None:
        self.group = group
        self.topic = f"{group.name}-topic"
        self.target, self.other = Target(folder / "target"), Target(folder / "other")
        self.url = ""
        self.count = 0

    async def open(self, client: Client) -> None:
        """Start the worker and both connectors, and wait until they take records."""
        self._producer = Producer(client)
        await self._producer.start()
        await Admin(client).create_topics([NewTopic(self.topic, PARTITIONS, 1)])
        self.url = self.group.start()
        for name, target in (("harmed", self.target), ("other", self.other)):
            config = {**target.config, **QUICK, "topics": self.topic, "tasks.max": "2"}
            self.group.do("PUT", f"{self.url}/connectors/{name}/config", config)
        await self.write(10)
        await until(lambda: self.is_whole(self.target) and self.is_whole(self.other))

    async def write(self, count: int, size: int = 10) -> None:
        """Add records to the topic, with their numbers as keys."""
        for number in range(self.count, self.count + count):
            key, partition = str(number).encode(), number % PARTITIONS
            await self._producer.send(self.topic, b"x" * size, key=key, partition=partition)
        await self._producer.flush()
        self.count += count

    async def close(self) -> None:
        """Stop writing."""
        await self._producer.close()

    def is_whole(self, target: Target) -> bool:
        """Return True if a target has every record."""
        return set(target.keys) == set(range(self.count))

    def is_running(self, name: str = "harmed") -> bool:
        """Return True if both tasks of a connector are RUNNING without a trace."""
        tasks: list[dict[str, Any]] = self.group.status(self.url, name).get("tasks", [])
        return [(task["state"], task.get("trace")) for task in tasks] == [("RUNNING", None)] * 2

    def memory(self) -> int:
        """Return the bytes of memory that the worker has."""
        status = Path(f"/proc/{self.group.workers[self.url].pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024


async def test_a_target_slower_than_the_poll_interval_loses_its_turn_and_no_record(
    group: ConnectGroup, tmp_path: Path
) -> None:
    pipeline = Pipeline(group, tmp_path)
    async with Client(group.settings["bootstrap.servers"]) as client:
        await pipeline.open(client)
        tries = pipeline.target.tries
        pipeline.target.begin("slow")
        await pipeline.write(20)
        await until(lambda: pipeline.target.tries >= tries + 2)  # both tasks are in a put that does not end

        # A rebalance cannot wait for them longer than the poll interval: others get what they had.
        owned: set[Any] = set()
        async with Consumer(
            client, "connect-harmed", auto_offset_reset="earliest", rebalance_timeout_ms=1000
        ) as outsider:
            await outsider.subscribe([pipeline.topic], on_assigned=_adding(owned))
            while len(owned) < PARTITIONS:
                await outsider.fetch(timeout_ms=100)
            assert pipeline.is_running()
            assert pipeline.is_running("other")
            await pipeline.write(20)
            await until(lambda: pipeline.is_whole(pipeline.other))
            pipeline.target.end("slow")

        await pipeline.write(20)
        await until(lambda: pipeline.is_whole(pipeline.target))
        assert pipeline.is_running()
        await pipeline.close()


async def test_a_full_target_is_tried_again_until_it_has_room(group: ConnectGroup, tmp_path: Path) -> None:
    pipeline = Pipeline(group, tmp_path)
    async with Client(group.settings["bootstrap.servers"]) as client:
        await pipeline.open(client)
        before = pipeline.memory()
        pipeline.target.begin("full")
        pipeline.other.begin("full")
        tries = pipeline.target.tries
        await pipeline.write(LARGE_COUNT, LARGE_BYTES)
        await until(lambda: pipeline.target.tries > tries + 8)
        assert pipeline.memory() - before < HELD_BYTES
        assert pipeline.is_running()
        pipeline.other.end("full")
        await until(lambda: pipeline.is_whole(pipeline.other))

        # Whatever is asked of a task in this state has its effect.
        url = f"{pipeline.url}/connectors/harmed"
        group.do("PUT", f"{url}/pause")
        await until(
            lambda: [t["state"] for t in group.status(pipeline.url, "harmed")["tasks"]] == ["PAUSED"] * 2
        )
        group.do("PUT", f"{url}/resume")
        await until(pipeline.is_running)
        group.do("POST", f"{url}/tasks/0/restart")
        tries = pipeline.target.tries
        await until(lambda: pipeline.target.tries > tries + 3)
        await until(pipeline.is_running)
        pipeline.target.end("full")
        await until(lambda: pipeline.is_whole(pipeline.target))
        assert pipeline.is_running()
        assert pipeline.memory() - before < HELD_BYTES
        assert "the target is full" in group.log(pipeline.url).read_text()
        await pipeline.close()


def _adding(owned: set[Any]) -> Any:
    async def on_assigned(partitions: set[Any]) -> None:
        owned.update(partitions)

    return on_assigned
