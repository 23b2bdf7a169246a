"""The threads that a plugin leaves behind."""

from __future__ import annotations

import threading

_END_SECONDS = 10.0


def assert_no_threads_since(before: set[threading.Thread]) -> None:
    """Raise AssertionError if threads that are not in `before` still run, after some time to end."""
    new = [thread for thread in threading.enumerate() if thread not in before]
    for thread in new:
        thread.join(_END_SECONDS)
    left = [thread.name for thread in new if thread.is_alive()]
    assert not left, f"threads still run after stop: {', '.join(left)}"
