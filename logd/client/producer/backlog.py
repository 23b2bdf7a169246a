"""What a producer was given and has not got acknowledged: a queue per partition, within a bound of memory."""

from __future__ import annotations

from collections.abc import Callable

from logd.client.producer.accumulator import PartitionQueue, PendingBatch
from logd.client.producer.gate import TransactionGate
from logd.client.producer.identity import Identity
from logd.client.producer.memory import Memory
from logd.errors import MillstreamError
from logd.topic_partition import TopicPartition


class Backlog:
    """The producer takes `memory` when it fills `queues`; here it is given back when a batch is done with."""

    def __init__(
        self, memory_bytes: int, *, halts: bool = False, gate: TransactionGate | None = None
    ) -> None:
        self._halts = halts
        self._gate = gate
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.memory = Memory(memory_bytes)

    def queue(self, tp: TopicPartition, identity: Identity) -> PartitionQueue:
        """The partition's queue; a new one produces as `identity`."""
        queue = self.queues.get(tp)
        if queue is None:
            queue = self.queues[tp] = PartitionQueue(tp, identity, halts=self._halts, gate=self._gate)
        return queue

    def seal(self) -> None:
        """Nothing that is queued now waits for more records."""
        for queue in self.queues.values():
            queue.seal()

    def free(self, batch: PendingBatch) -> None:
        """The batch is acked or given up: its memory can be used again."""
        size, batch.size = batch.size, 0
        self.memory.free(size)

    def drop(
        self,
        queue: PartitionQueue,
        error: MillstreamError,
        which: Callable[[PendingBatch], bool] = lambda batch: True,
    ) -> None:
        """Give up a queue's batches, or some of them."""
        for batch in queue.drop(which, error):
            self.free(batch)

    def drop_halted(self, queue: PartitionQueue) -> None:
        """A queue that halts has nothing to send any more."""
        if queue.halted is not None:
            self.drop(queue, queue.halted)

    def abandon_from(self, transaction: int, error: MillstreamError) -> None:
        """Fail what belongs to this transaction and those behind it, and every `send` that waits for room."""
        for queue in self.queues.values():
            queue.interrupt()
            self.drop(queue, error, lambda batch: batch.transaction >= transaction)
        self.memory.fail(error)

    def abandon(self, error: MillstreamError) -> None:
        """Fail everything that is queued or under way, and every `send` that waits for room."""
        for queue in self.queues.values():
            self.drop(queue, error)
        self.memory.fail(error)
