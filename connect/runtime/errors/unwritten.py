"""The records that were left out and are not in the dead letter queue yet."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict

from kafka_client import TopicPartition


class Unwritten:
    """The offsets of such records, by partition. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offsets: defaultdict[TopicPartition, Counter[int]] = defaultdict(Counter)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, tp: TopicPartition, offset: int) -> None:
        """Add a record; one that is reported twice has to be written twice."""
        with self._lock:
            self._offsets[tp][offset] += 1
            self._count += 1

    def remove(self, tp: TopicPartition, offset: int) -> None:
        """Remove a record that was added."""
        with self._lock:
            offsets = self._offsets[tp]
            offsets[offset] -= 1
            self._count -= 1
            if not offsets[offset]:
                del offsets[offset]
            if not offsets:
                del self._offsets[tp]

    def bounded(self, tp: TopicPartition, offset: int) -> int:
        """Return the offset that may be committed: `offset`, or that of the partition's first such record."""
        with self._lock:
            return min((offset, *self._offsets[tp])) if tp in self._offsets else offset
