"""Computes which source offsets may be committed: those with all records before them acknowledged.

Kafka keeps a queue of records per source partition (SubmittedRecords, KAFKA-12226) so that a slow partition
does not delay the others. Here an entry is the part of a poll batch in one source partition. It is done when
the batch is. A part without an offset is in the queue as well: the next offset covers it.

    source partition A:  [done, 10] [done, 20] [waiting, -] [done, 40]   -> 20 may be committed

The next offset of any partition may cover records without a source partition. So a batch that ends with such
records delays every offset submitted after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping


class SubmittedBatch:
    """A poll batch in flight. Call `acked()` when all its records are acknowledged."""

    __slots__ = ("done", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.done = False

    def acked(self) -> None:
        """Mark all records of the batch as acknowledged."""
        self.done = True


class SubmittedOffsets:
    """The queues of submitted offsets, for use on the loop.

    The next batch or commit removes acknowledged entries.
    """

    def __init__(self) -> None:
        self._queues: dict[bytes, deque[tuple[SubmittedBatch, bytes | None]]] = {}
        self._uncovered: deque[SubmittedBatch] = deque()
        self._committable: dict[bytes, bytes] = {}
        self._batches = 0

    def submit(self, offsets: Mapping[bytes, bytes | None], *, uncovered: bool = False) -> SubmittedBatch:
        """Add a batch, before it is sent, with its last offset by the source partition's key.

        An offset is None if the partition's records in the batch have none. `uncovered` is True if records
        without a source partition follow the last offset.
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
        """Add offsets without records; they may be committed once all earlier batches are acknowledged."""
        self.submit(offsets).acked()

    def take_committable(self) -> dict[bytes, bytes]:
        """Return each source partition's last offset with all records before it acknowledged.

        Return each once.
        """
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
        """Remove the acknowledged entries at the head of a queue."""
        while queue and queue[0][0].done and not self._is_held_up(queue[0][0]):
            offset = queue.popleft()[1]
            if offset is not None:
                self._committable[key] = offset

    def _is_held_up(self, batch: SubmittedBatch) -> bool:
        return bool(self._uncovered) and self._uncovered[0].number < batch.number

    def statistics(self) -> dict[str, int]:
        """Return the numbers of queued entries and of their source partitions.

        The producer's memory bounds them: while it has no room for a batch, no other batch is polled.
        """
        return {"entries": self.pending, "source_partitions": len(self._queues)}

    @property
    def pending(self) -> int:
        """Entries in the queues: not acknowledged, or acknowledged since the last batch or commit."""
        return sum(map(len, self._queues.values())) + len(self._uncovered)
