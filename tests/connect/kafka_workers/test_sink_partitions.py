"""Kafka's SinkConnectorsIntegrationTest against our worker: topics that come and go under a sink's task.

| Kafka's method | our test |
|---|---|
| testEagerConsumerPartitionAssignment | test_an_eager_assignor_revokes_and_assigns_everything |
| testCooperativeConsumerPartitionAssignment | test_a_cooperative_assignor_leaves_the_others_alone |

Each step compares the open, close and flush calls of every partition, and that no record comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_client import Admin, Client, NewTopic, Producer
from tests.connect.kafka_workers.worker_script import WorkerScript

CONSUMER = "org.apache.kafka.clients.consumer."
Calls = tuple[int, int, int]
"""How often a partition was assigned, revoked and committed."""


@pytest.fixture(scope="module")
def worker(logd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerScript]:
    """Yield a worker that commits offsets at rebalances only, as Kafka's does within its test."""
    folder = tmp_path_factory.mktemp("worker")
    script = WorkerScript(logd.bootstrap, folder, offset_flush_interval_ms="600000")
    try:
        yield script.start()
    finally:
        script.close()


class Script:
    """A sink of three topics, of which none exists at first, and what its task was told."""

    def __init__(self, worker: WorkerScript, client: Client, producer: Producer, name: str) -> None:
        self._worker, self._name = worker, name
        self._admin, self._producer = Admin(client), producer
        self._sent: list[str] = []

    def begin(self, assignor: str) -> None:
        topics = ",".join(self.topic(n) for n in (1, 2, 3))
        config = self._worker.sink(
            self._name,
            topics,
            consumer_override_partition_assignment_strategy=CONSUMER + assignor,
            consumer_override_default_api_timeout_ms="5000",
            consumer_override_metadata_max_age_ms="100",
        )
        self._worker.put(self._name, config)
        self._worker.wait_running(self._name)
        assert self.calls() == {}

    def topic(self, number: int) -> str:
        return f"{self._name}-{number}"

    async def create(self, number: int) -> None:
        await self._admin.create_topics([NewTopic(self.topic(number), 1, 1)])

    async def delete(self, number: int) -> None:
        await self._admin.delete_topics([self.topic(number)])

    async def write(self, number: int, value: str) -> None:
        await self._producer.send_and_wait(self.topic(number), value.encode())
        self._sent.append(value)

    def wait_calls(self, **expected: Calls) -> None:
        """Wait until the task has all records, then compare its calls; `t1` is the first topic."""
        self._worker.wait_until(lambda: len(self._values()) >= len(self._sent))
        self._worker.wait_until(lambda: self.calls() == expected)
        assert sorted(self._values()) == sorted(self._sent)

    def _values(self) -> list[str]:
        return [event["value"] for event in self._worker.events(self._name, "put")]

    def calls(self) -> dict[str, Calls]:
        counts: dict[str, list[int]] = {}
        for event in self._worker.events(self._name):
            if event["event"] in ("open", "close", "flush"):
                key = "t" + event["tp"].removeprefix(f"{self._name}-").partition("-")[0]
                row = counts.setdefault(key, [0, 0, 0])
                row[("open", "close", "flush").index(event["event"])] += 1
        return {key: (row[0], row[1], row[2]) for key, row in sorted(counts.items())}


async def run_script(
    worker: WorkerScript, bootstrap: str, name: str, assignor: str, steps: list[dict[str, Calls]]
) -> None:
    """Create the topics one by one, and delete the first; `steps` are the calls after each change."""
    async with Client(bootstrap) as client, Producer(client) as producer:
        script = Script(worker, client, producer, name)
        script.begin(assignor)
        await script.create(1)
        await script.write(1, "t1v1")
        script.wait_calls(**steps[0])
        await script.create(2)
        for value in ("t2v1", "t1v2"):
            await script.write(2, value)
        script.wait_calls(**steps[1])
        await script.create(3)
        await script.write(3, "t3v1")
        for value in ("t2v2", "t1v3"):
            await script.write(2, value)
        script.wait_calls(**steps[2])
        await script.delete(1)
        await script.write(3, "t3v2")
        await script.write(2, "t2v3")
        script.wait_calls(**steps[3])


async def test_an_eager_assignor_revokes_and_assigns_everything(worker, kit, topic, name):
    steps: list[dict[str, Calls]] = [
        {"t1": (1, 0, 0)},
        {"t1": (2, 1, 1), "t2": (1, 0, 0)},
        {"t1": (3, 2, 2), "t2": (2, 1, 1), "t3": (1, 0, 0)},
        {"t1": (3, 3, 3), "t2": (3, 2, 2), "t3": (2, 1, 1)},
    ]
    await run_script(worker, kit.bootstrap, name, "RoundRobinAssignor", steps)


async def test_a_cooperative_assignor_leaves_the_others_alone(worker, kit, topic, name):
    steps: list[dict[str, Calls]] = [
        {"t1": (1, 0, 0)},
        {"t1": (1, 0, 0), "t2": (1, 0, 0)},
        {"t1": (1, 0, 0), "t2": (1, 0, 0), "t3": (1, 0, 0)},
        {"t1": (1, 1, 1), "t2": (1, 0, 0), "t3": (1, 0, 0)},
    ]
    await run_script(worker, kit.bootstrap, name, "CooperativeStickyAssignor", steps)
