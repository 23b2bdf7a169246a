"""The timestamp extractors of Kafka Streams, for ``default.timestamp.extractor`` or a source of its own.

A negative timestamp ends the application unless an extractor finds a better one; that is Kafka's
FailOnInvalidTimestamp, and needs no function here.
"""

from __future__ import annotations

import time
from typing import Any


def wallclock_timestamp(key: Any, value: Any, timestamp: int) -> int:
    """When the record is read, ms: a replay gives other times. Kafka's WallclockTimestampExtractor."""
    return time.time_ns() // 1_000_000


def log_and_skip_on_invalid_timestamp(key: Any, value: Any, timestamp: int) -> int:
    """The record's own; one that is negative has the record left out, counted as dropped, with a warning.

    It is the source that leaves it out, which knows this function. Kafka's LogAndSkipOnInvalidTimestamp.
    """
    return timestamp
