"""The time that a client has to send a request in whole.

Without it, a client that sends a byte now and then holds a connection and its buffer for ever. A large
request has longer, since a slow network may carry it.
"""

from __future__ import annotations

from typing import Final

FINISHED: Final = -1.0
"""In place of a time, if no request has arrived in part."""
SECONDS_MAX: Final = 60.0
"""For the first request of a connection, from its start; and for each request that arrives in pieces."""
SLOWEST_BYTES_PER_S: Final = 16 * 1024


def is_late(since: float, now: float, announced: int) -> bool:
    """Return True if a request of `announced` bytes, not finished since `since`, has taken too long."""
    return since != FINISHED and now - since > SECONDS_MAX + announced / SLOWEST_BYTES_PER_S
