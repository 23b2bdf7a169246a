"""`max.task.idle.ms` with brokers (KIP-353, KIP-695): which of a task's inputs are waited for, and which not.

What one input brings is held up, and the clock stands still: nothing depends on how long anything takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import BatchFetcher, BatchProducer, Client, Fetched, TopicPartition
from streams import KafkaStreams, StreamsBuilder
from streams.runtime import app as application
from streams.runtime import task_inputs
from tests.streams.support.running import make_topics, run, start
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

NewName = Callable[[str], str]
IDLE_MS = 50
TURNS = 5
"""After so many with nothing done a task is taken to wait."""


class Scene:
    """An application over ``<name>-a`` and ``<name>-b``, one task: `seen` are the records' times, which are
    their values, too. `go_on` lets what ``b`` brings through; `now` is the wall clock.
    """

    def __init__(self, bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bootstrap, self.name = bootstrap, name
        self.timestamps: list[int] = []
        self.now = application.wall_clock()
        self.go_on = asyncio.Event()
        self.withheld: list[Fetched] = []
        monkeypatch.setattr(application, "wall_clock", lambda: self.now)
        monkeypatch.setattr(task_inputs, "BatchFetcher", self._fetcher())

    def _fetcher(self) -> type[BatchFetcher]:
        scene = self

        class HoldsUpB(BatchFetcher):
            async def fetch(self, **limits: Any) -> list[Fetched]:
                batches = await super().fetch(**limits)
                withheld, scene.withheld = [*scene.withheld, *batches], []
                if not scene.go_on.is_set():
                    scene.withheld = [each for each in withheld if each.tp.topic.endswith("-b")]
                return [each for each in withheld if each not in scene.withheld]

        return HoldsUpB

    def application(self, state_dir: Path, max_task_idle_ms: int) -> KafkaStreams:
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        both = builder.stream(f"{self.name}-a").merge(builder.stream(f"{self.name}-b"))
        both.foreach(lambda key, value: self.timestamps.append(value))
        return start(builder.build(), self.bootstrap, self.name, state_dir, max_task_idle_ms=max_task_idle_ms)

    async def send(self, topic: str, *times: int) -> None:
        async with Client(self.bootstrap) as client, BatchProducer(client) as producer:
            rows = [(time, b"k", time.to_bytes(8, "big"), ()) for time in times]
            await (await producer.send(f"{self.name}-{topic}", 0, rows))

    async def waits(self, app: KafkaStreams, *timestamps: int) -> None:
        """Wait until the application has processed these values, and check that it processes no more."""
        await until(lambda: len(self.timestamps) >= len(timestamps))
        for _ in range(TURNS):
            app._instance.loop.progress.clear()
            await app._instance.loop.progress.wait()
        assert self.timestamps == [*timestamps]


def test_what_the_broker_has_is_waited_for_and_merged_by_time(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 0, the default, no input is processed while records of another are still to be fetched."""

    async def case() -> None:
        scene = Scene(logd.bootstrap, new_name("lag"), monkeypatch)
        await make_topics(logd.bootstrap, **{f"{scene.name}-a": 1, f"{scene.name}-b": 1})
        await scene.send("a", 1, 3, 5)
        await scene.send("b", 2, 4, 6)
        async with scene.application(tmp_path, 0) as app:
            await until(lambda: bool(scene.withheld) and len(queue(app, scene, "a")) == 3)
            await scene.waits(app)
            scene.go_on.set()
            await scene.waits(app, 1, 2, 3, 4, 5, 6)
            await scene.send("a", 7)
            await scene.waits(app, 1, 2, 3, 4, 5, 6, 7)  # The broker has no more of b.

    run(case, 40)


def test_with_minus_one_nothing_is_waited_for(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def case() -> None:
        scene = Scene(logd.bootstrap, new_name("at-once"), monkeypatch)
        await make_topics(logd.bootstrap, **{f"{scene.name}-a": 1, f"{scene.name}-b": 1})
        await scene.send("a", 1, 3, 5)
        await scene.send("b", 2, 4, 6)
        async with scene.application(tmp_path, -1) as app:
            await scene.waits(app, 1, 3, 5)
            scene.go_on.set()
            await scene.waits(app, 1, 3, 5, 2, 4, 6)

    run(case, 40)


def test_an_input_that_is_empty_at_the_broker_is_waited_for_so_long(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def case() -> None:
        scene = Scene(logd.bootstrap, new_name("idle"), monkeypatch)
        scene.go_on.set()
        await make_topics(logd.bootstrap, **{f"{scene.name}-a": 1, f"{scene.name}-b": 1})
        await scene.send("a", 1, 3, 5)
        async with scene.application(tmp_path, IDLE_MS) as app:
            await until(lambda: bool(app.tasks) and len(queue(app, scene, "a")) == 3)
            await scene.waits(app)
            await scene.send("b", 2, 4)
            await scene.waits(app, 1, 2, 3, 4)  # What came later goes where it belongs, and 5 waits again.
            scene.now += IDLE_MS - 1
            await scene.waits(app, 1, 2, 3, 4)
            scene.now += 1
            await scene.waits(app, 1, 2, 3, 4, 5)

    run(case, 40)


def queue(app: KafkaStreams, scene: Scene, topic: str) -> Any:
    """Return an input's queue, or an empty one while its task does not run."""
    return app._instance.loop.inputs.queues.get(TopicPartition(f"{scene.name}-{topic}", 0), ())
