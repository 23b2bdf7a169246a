"""Running async tests: a deadline for each, and waiting for conditions instead of sleeping."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

TEST_SECONDS = 300.0
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "missing_topic_wait_ms": 20,
}
"""Client settings for brokers that fail on purpose."""


def run(test: Coroutine[Any, Any, T]) -> T:
    """Run one async test; no task may be left when it ends."""

    async def limited() -> T:
        async with asyncio.timeout(TEST_SECONDS):
            result = await test
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, f"tasks left behind: {left}"
        return result

    return asyncio.run(limited())
