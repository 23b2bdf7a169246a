"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 100.0
"""Far more than any wait takes, on a busy machine too: only a hang comes so far."""


def wait_for(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Look again and again until ``condition`` holds; AssertionError when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds} s"
        time.sleep(0.005)
