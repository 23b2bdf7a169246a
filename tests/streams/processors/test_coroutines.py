"""The event loop's side of asynchronous nodes: calls, contexts, and where a call is that goes on for long."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from streams.errors import TaskLost
from streams.processors.coroutines import Call
from streams.runtime.threads.coroutines import LoopCoroutines
from streams.runtime.threads.poll_interval_watchdog import hanging
from streams.runtime.threads.worker import Worker
from tests.support.waiting import until

Test = Callable[[LoopCoroutines, deque[Call]], Awaitable[None]]


def in_a_loop(test: Test) -> None:
    async def limited() -> None:
        coroutines = LoopCoroutines(threading.Event())
        async with asyncio.timeout(30):
            await test(coroutines, deque())
            await coroutines.close()

    asyncio.run(limited())


async def hangs() -> None:
    await asyncio.Event().wait()


async def fails() -> None:
    raise ValueError("no")


async def cancelled() -> None:
    raise asyncio.CancelledError


def test_calls_are_started_in_a_thread_and_run_in_the_loop() -> None:
    async def test(coroutines: LoopCoroutines, over: deque[Call]) -> None:
        loop = asyncio.get_running_loop()

        async def here() -> bool:
            return asyncio.get_running_loop() is loop

        calls = [Call("node", work) for work in (here, fails, cancelled)]

        def work() -> None:
            for call in calls:
                coroutines.start(call, over)
            while not all(call.is_over for call in calls):
                coroutines.wait(over)
                over.popleft()

        await asyncio.to_thread(work)
        assert [call.result for call in calls] == [True, None, None]
        assert [str(call.error or "") for call in calls] == ["", "no", "the coroutine was cancelled"]
        assert coroutines.arrived.is_set()
        assert coroutines.statistics() == {"calls": 0, "oldest_call_seconds": 0.0}

    in_a_loop(test)


async def test_a_thread_that_waits_is_let_go() -> None:
    interrupted = threading.Event()
    coroutines, over = LoopCoroutines(interrupted), deque[Call]()
    coroutines.start(Call("node", hangs), over)
    waiting = asyncio.create_task(asyncio.to_thread(coroutines.wait, over))
    await asyncio.sleep(0)
    interrupted.set()
    with pytest.raises(TaskLost, match="what was in flight is given up"):
        await waiting
    await coroutines.close()


def test_it_is_told_where_the_oldest_call_is() -> None:
    async def test(coroutines: LoopCoroutines, over: deque[Call]) -> None:
        assert coroutines.oldest_told() == ""
        coroutines.start(Call("price", hangs), over)
        coroutines.start(Call("other", hangs), over)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert coroutines.where_it_hangs().startswith(f"node price ({__file__}, line ")
        assert coroutines.where_it_hangs().endswith(", in hangs)")
        assert coroutines.is_busy

    in_a_loop(test)


def test_a_call_that_is_given_up_before_it_began_is_over() -> None:
    async def test(coroutines: LoopCoroutines, over: deque[Call]) -> None:
        call = Call("node", hangs)
        coroutines.start(call, over)
        coroutines.give_up([call])
        await until(lambda: bool(over))
        assert coroutines.statistics()["calls"] == 0

    in_a_loop(test)


def test_contexts() -> None:
    values: list[str] = []

    @asynccontextmanager
    async def session() -> AsyncGenerator[str, None]:
        values.append("entered")
        if len(values) == 1:
            raise ConnectionError("not now")
        yield "session"
        values.append("left")

    @asynccontextmanager
    async def never() -> AsyncGenerator[str, None]:
        await asyncio.Event().wait()
        yield ""

    async def test(coroutines: LoopCoroutines, over: deque[Call]) -> None:
        first = await asyncio.gather(
            *(coroutines.entered("node", session) for _ in range(2)), return_exceptions=True
        )
        assert [str(each) for each in first] == ["not now", "not now"]
        both = await asyncio.gather(*(coroutines.entered("node", session) for _ in range(2)))
        assert (both, values) == (["session", "session"], ["entered", "entered"])
        coroutines.start(Call("slow", lambda: coroutines.entered("slow", never)), over)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert coroutines.where_it_hangs() == "node slow, whose context is not entered yet"

    in_a_loop(test)
    assert values == ["entered", "entered", "left"]


async def test_only_work_that_is_cancelled_itself_is_interrupted() -> None:
    """Queued work may be cancelled while the work before it goes on."""
    worker, first, go_on = Worker(), threading.Event(), threading.Event()
    interruptions: list[bool] = []

    def work() -> None:
        first.set()
        go_on.wait()
        interruptions.append(worker.interrupted.is_set())

    running = asyncio.create_task(worker.run(work))
    await asyncio.to_thread(first.wait)
    queued = asyncio.create_task(worker.run(work))
    await asyncio.sleep(0)
    queued.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await running
    with pytest.raises(asyncio.CancelledError):
        await queued
    await worker.run(work)
    assert interruptions == [False, True, False]
    worker.close()


def test_a_worker_that_waits_for_a_call_hangs_in_it() -> None:
    async def test(coroutines: LoopCoroutines, over: deque[Call]) -> None:
        coroutines.start(Call("gate", hangs), over)
        worker = Worker()
        job = asyncio.create_task(worker.run(coroutines.wait, over))
        await until(lambda: coroutines.is_waited_for)
        for_long: Any = SimpleNamespace(oldest_job_seconds=3600.0, thread_id=worker.thread_id)
        where = hanging(for_long, coroutines, limit_ms=60_000, nodes=["gate"])
        assert where is not None
        assert f"node gate ({__file__}, line " in where, "and not a line of threading's"
        assert hanging(worker, coroutines, limit_ms=3_600_000, nodes=["gate"]) is None
        await coroutines.close()
        await job
        worker.close()

    in_a_loop(test)
