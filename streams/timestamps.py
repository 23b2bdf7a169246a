"""The timestamp extractors of Kafka Streams, for ``default.timestamp.extractor`` or a single source.

A negative timestamp ends the application unless an extractor returns another one. This is Kafka's
FailOnInvalidTimestamp, which needs no function here.
"""

from __future__ import annotations

import time
from typing import Any


def wallclock_timestamp(key: Any, value: Any, timestamp: int) -> int:
    """Return the current time, ms, so a replay has other times. Kafka's WallclockTimestampExtractor."""
    return time.time_ns() // 1_000_000


def log_and_skip_on_invalid_timestamp(key: Any, value: Any, timestamp: int) -> int:
    """Return the record's own timestamp. Kafka's LogAndSkipOnInvalidTimestamp.

    Sources recognize this function: they drop a record with a negative timestamp, with a warning.
    """
    return timestamp
