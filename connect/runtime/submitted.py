"""Which source offsets may be committed: those with everything before them acknowledged.

Kafka keeps a queue of records per source partition (SubmittedRecords, KAFKA-12226) so that a slow partition
does not hold up the others. Here an entry stands for a whole poll batch's part in a source partition,
and is done when the batch is.

    source partition A:  [done, 10] [done, 20] [waiting, 30] [done, 40]   -> 20 may be committed
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping


class SubmittedBatch:
    """A poll batch on its way. `acked()` must be called when all of it is acknowledged."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False

    def acked(self) -> None:
        """Everything in the batch is in the log."""
        self.done = True


class SubmittedOffsets:
    """The queues. Used from the loop only."""

    def __init__(self) -> None:
        self._queues: dict[bytes, deque[tuple[SubmittedBatch, bytes]]] = {}

    def submit(self, offsets: Mapping[bytes, bytes]) -> SubmittedBatch:
        """Note a batch, before it is sent, with the last offset it holds for each source partition's key."""
        batch = SubmittedBatch()
        for key, offset in offsets.items():
            self._queues.setdefault(key, deque()).append((batch, offset))
        return batch

    def take_committable(self) -> dict[bytes, bytes]:
        """Each source partition's last offset with nothing unacknowledged before it; given once."""
        ready: dict[bytes, bytes] = {}
        for key, queue in list(self._queues.items()):
            while queue and queue[0][0].done:
                ready[key] = queue.popleft()[1]
            if not queue:
                del self._queues[key]
        return ready

    @property
    def pending(self) -> int:
        """Entries not yet taken."""
        return sum(map(len, self._queues.values()))
