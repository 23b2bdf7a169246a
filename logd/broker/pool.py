"""Jobs that may block, run in the broker's thread pool, and work that is not left half done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TypeVar

from logd.errors import KafkaError

log = logging.getLogger("logd.broker")

Result = TypeVar("Result")


async def run_job(executor: Executor, job: Callable[[], Result]) -> Result:
    """Run a job in the pool; one that is cancelled is waited for all the same, since it cannot be stopped."""
    return await to_its_end(asyncio.get_running_loop().run_in_executor(executor, job))


async def to_its_end(work: Awaitable[Result]) -> Result:
    """Await work that goes on when this call is cancelled: the cancelling takes effect behind its end.

    A KafkaError is an answer, which nobody waits for then; any other failure is logged.
    """
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait((running,))
        failure = None if running.cancelled() else running.exception()
        if failure is not None and not isinstance(failure, KafkaError):
            log.error("what was cancelled failed at its end", exc_info=failure)
        raise
