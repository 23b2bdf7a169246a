"""Which source offsets may be committed: those with everything before them acknowledged.

Kafka keeps a queue of records per source partition (SubmittedRecords, KAFKA-12226) so that a slow partition
does not hold up the others. Here an entry stands for a whole poll batch's part in a source partition,
and is done when the batch is. A part without an offset is in the queue as well: the next offset covers it.

    source partition A:  [done, 10] [done, 20] [waiting, -] [done, 40]   -> 20 may be committed

Records that name no source partition may be covered by any partition's next offset, so a batch that ends in
some holds up every offset submitted after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping


class SubmittedBatch:
    """A poll batch on its way. `acked()` must be called when all of it is acknowledged."""

    __slots__ = ("done", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.done = False

    def acked(self) -> None:
        """Everything in the batch is in the log."""
        self.done = True


class SubmittedOffsets:
    """The queues. Used from the loop only. The next batch or commit removes what is acknowledged."""

    def __init__(self) -> None:
        self._queues: dict[bytes, deque[tuple[SubmittedBatch, bytes | None]]] = {}
        self._uncovered: deque[SubmittedBatch] = deque()
        self._committable: dict[bytes, bytes] = {}
        self._batches = 0

    def submit(self, offsets: Mapping[bytes, bytes | None], *, uncovered: bool = False) -> SubmittedBatch:
        """Note a batch, before it is sent, with the last offset it holds for each source partition's key.

        None: there are records of the partition, and no offset. `uncovered`: behind the last offset are
        records without a source partition.
        """
        self._batches += 1
        batch = SubmittedBatch(self._batches)
        self._drop_covered()
        for key, offset in offsets.items():
            queue = self._queues.setdefault(key, deque())
            self._advance(key, queue)
            queue.append((batch, offset))
        if uncovered:
            self._uncovered.append(batch)
        return batch

    def update(self, offsets: Mapping[bytes, bytes]) -> None:
        """Note offsets without records: they count once everything submitted before is acknowledged."""
        self.submit(offsets).acked()

    def take_committable(self) -> dict[bytes, bytes]:
        """Each source partition's last offset with nothing unacknowledged before it; given once."""
        self._drop_covered()
        for key, queue in list(self._queues.items()):
            self._advance(key, queue)
            if not queue:
                del self._queues[key]
        ready, self._committable = self._committable, {}
        return ready

    def _drop_covered(self) -> None:
        while self._uncovered and self._uncovered[0].done:
            self._uncovered.popleft()

    def _advance(self, key: bytes, queue: deque[tuple[SubmittedBatch, bytes | None]]) -> None:
        """Take what is acknowledged from the head of a queue."""
        while queue and queue[0][0].done and not self._is_held_up(queue[0][0]):
            offset = queue.popleft()[1]
            if offset is not None:
                self._committable[key] = offset

    def _is_held_up(self, batch: SubmittedBatch) -> bool:
        return bool(self._uncovered) and self._uncovered[0].number < batch.number

    def statistics(self) -> dict[str, int]:
        """entries that wait to be covered by a commit, of how many source partitions. The producer's memory
        bounds them: a batch that it has no room for is not followed by another.
        """
        return {"entries": self.pending, "source_partitions": len(self._queues)}

    @property
    def pending(self) -> int:
        """Entries in the queues: not acknowledged, or acknowledged since the last batch or commit."""
        return sum(map(len, self._queues.values())) + len(self._uncovered)
