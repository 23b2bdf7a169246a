"""Jobs in the pool, and work that is not left half done."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from logd.broker.pool import run_job, to_its_end
from logd.errors import ErrorCode, KafkaError


def test_cancelled_behind_the_end() -> None:
    steps: list[str] = []

    async def work(may_end: asyncio.Event) -> None:
        steps.append("begun")
        await may_end.wait()
        steps.append("ended")

    async def main() -> None:
        may_end = asyncio.Event()
        waiting = asyncio.create_task(to_its_end(work(may_end)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        assert steps == ["begun"] and not waiting.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert steps == ["begun", "ended"]


@pytest.mark.parametrize(
    ("error", "told"),
    [(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic t"), 0), (RuntimeError("a bug"), 1)],
)
def test_an_answer_nobody_waits_for_is_no_complaint(
    error: Exception, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(may_end: asyncio.Event) -> None:
        await may_end.wait()
        raise error

    async def main() -> None:
        may_end = asyncio.Event()
        waiting = asyncio.create_task(to_its_end(work(may_end)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    gc.collect()
    assert [record.name for record in caplog.records] == ["logd.broker"] * told


def test_results_and_errors_come_through() -> None:
    def fail() -> None:
        raise OSError("no room")

    async def main() -> None:
        with ThreadPoolExecutor(1) as executor:
            assert await run_job(executor, lambda: 7) == 7
            with pytest.raises(OSError, match="no room"):
                await run_job(executor, fail)

    asyncio.run(main())


def test_a_job_is_waited_for_when_cancelled() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def job() -> None:
        begun.set()
        may_end.wait(10)
        ended.set()

    async def main() -> None:
        with ThreadPoolExecutor(1) as executor:
            waiting = asyncio.create_task(run_job(executor, job))
            await asyncio.to_thread(begun.wait, 10)
            waiting.cancel()
            await asyncio.sleep(0)
            assert not waiting.done()
            may_end.set()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert ended.is_set()

    asyncio.run(main())
