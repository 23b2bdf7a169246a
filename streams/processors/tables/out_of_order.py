"""Updates of a table that are older than what it has: they are applied, and the log is warned of them.

As Kafka's KTableSource says it, but in one line a second and store: an input that is out of order is so in
many records. Versioned stores know better what to do with such updates, and say nothing.
"""

from __future__ import annotations

import logging
from typing import Any

from streams.processors.wiring import TaskState
from streams.state import CachedStore

log = logging.getLogger(__name__)

WARNED_EVERY_MS = 1000
"""By wall clock; what comes in between is counted, and the number told with the next line."""


class OutOfOrderUpdates:
    """Warns of one table's. ``task`` knows the record in work, and the time."""

    def __init__(self, store: CachedStore, task: TaskState) -> None:
        self._store = store
        self._task = task
        self._warned_at: int | None = None
        self._untold = 0

    def look(self, key: Any, timestamp: int) -> None:
        """Call before an update of this time (ms) is applied, if it may be older than what the table has."""
        before = self._store.timestamp(self._store.encode_key(key))
        if before is None or timestamp >= before:
            return
        now = self._task.wall_clock
        if self._warned_at is not None and 0 <= now - self._warned_at < WARNED_EVERY_MS:
            self._untold += 1
            return
        self._warn(before, timestamp)
        self._warned_at, self._untold = now, 0

    def _warn(self, before: int, timestamp: int) -> None:
        task = self._task
        log.warning(
            "Detected out-of-order KTable update for %s, old timestamp=[%d] new timestamp=[%d]. %s%s",
            self._store.name,
            before,
            timestamp,
            f"topic=[{task.topic}] partition=[{task.partition}] offset=[{task.offset}]."
            if task.topic
            else "Topic, partition and offset not known.",
            f" And {self._untold} more since the last such line." if self._untold else "",
        )
