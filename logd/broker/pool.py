"""Jobs that may block, run in the broker's thread pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

Result = TypeVar("Result")


async def run_job(executor: Executor, job: Callable[[], Result]) -> Result:
    """Run a job in the pool; one that is cancelled is waited for all the same, since it cannot be stopped."""
    running = asyncio.get_running_loop().run_in_executor(executor, job)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait((running,))
        raise
