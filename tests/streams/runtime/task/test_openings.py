"""Tasks are opened once what was dropped is over; a step at a time, by an opener that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.backoff import Backoff
from kafka_client.errors import RequestTimedOut
from streams.runtime.openings import Openings
from streams.runtime.task_id import TaskId
from streams.runtime.threads.worker import Worker
from tests.support.waiting import until

ID = TaskId(0, 0)


class Store:
    """A store that a standby has handed over."""

    def __init__(self) -> None:
        self.backend = SimpleNamespace(checkpoint=7)
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Scene:
    """`prepare` answers what the test puts into `answers`, one after the other."""

    def __init__(self, worker: Worker) -> None:
        self.answers: asyncio.Queue[Exception | None] = asyncio.Queue()
        self.store = Store()
        self.opened: list[Any] = []
        self.running_tasks: list[Any] = []
        self.restoring: dict[TaskId, Any] = {}
        opener: Any = self
        self.openings = Openings(
            opener,
            prepare=self._prepare,
            take=self._take,
            is_retriable=lambda error: isinstance(error, RequestTimedOut),
            backoff=lambda: Backoff(0.0, 0.0),
            restorer=worker,
        )
        stores: Any = {ID: {"counts": self.store}}
        self.openings.begin([ID], stores)

    async def _prepare(self) -> None:
        if (error := await self.answers.get()) is not None:
            raise error

    async def open(self, id: TaskId, stores: Any) -> Any:
        self.opened.append(stores)
        if len(self.opened) == 1:
            raise RequestTimedOut("scripted")
        return id

    async def _take(self, running: Any) -> None:
        self.running_tasks.append(running)


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


def run(worker: Worker, test: Callable[[Scene], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(30):
            await test(Scene(worker))

    asyncio.run(whole())


def test_nothing_is_opened_before_all_is_over(worker: Worker) -> None:
    async def test(scene: Scene) -> None:
        scene.answers.put_nowait(RequestTimedOut("scripted"))
        await until(scene.answers.empty)
        for _ in range(10):
            await asyncio.sleep(0)
        assert (scene.openings.ids, scene.opened) == ({ID}, [])
        assert scene.openings.offsets() == {ID: 7}, "what is at hand counts already"
        scene.answers.put_nowait(None)
        await until(lambda: scene.running_tasks == [ID])
        first, again = scene.opened
        assert first == {"counts": scene.store} and again is None, "the first attempt has closed them"
        assert not scene.openings.ids

    run(worker, test)


def test_stores_of_a_task_that_is_given_up_before_are_closed(worker: Worker) -> None:
    async def test(scene: Scene) -> None:
        await asyncio.sleep(0)
        await scene.openings.cancel([ID])
        assert scene.store.closed and not scene.openings.ids
        scene.answers.put_nowait(None)
        await until(scene.answers.empty)
        assert not scene.opened
        await scene.openings.cancel()

    run(worker, test)


def test_what_cannot_be_over_ends_the_application(worker: Worker) -> None:
    async def test(scene: Scene) -> None:
        scene.answers.put_nowait(ValueError("scripted"))
        await until(lambda: not scene.openings.ids)
        assert not scene.opened
        with pytest.raises(ValueError, match="scripted"):
            scene.openings.check()
        scene.openings.check()
        await scene.openings.cancel()
        assert scene.store.closed

    run(worker, test)
