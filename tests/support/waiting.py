"""Waiting for a condition, never for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SECONDS = 100.0
"""Far more than any wait takes, on a busy machine too: only a hang comes so far."""
SOONEST, LATEST = 0.002, 0.1
"""How long to wait before another look. Many looks ask a broker something, which keeps it from its work."""


def wait_for(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Look again and again until ``condition`` holds, the less often the longer it takes; AssertionError when
    it does not in time.
    """
    began = time.monotonic()
    while not condition():
        passed = time.monotonic() - began
        assert passed < seconds, f"not in {seconds} s"
        time.sleep(min(max(passed / 20, SOONEST), LATEST))


async def until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    """Let the loop go on until ``condition`` holds: turn by turn at first, then the less often the longer it
    takes. AssertionError when it does not in time.
    """
    began = time.monotonic()
    while not condition():
        passed = time.monotonic() - began
        assert passed < seconds, f"not in {seconds} s"
        await asyncio.sleep(min(passed / 20, LATEST) if passed > SOONEST else 0)
