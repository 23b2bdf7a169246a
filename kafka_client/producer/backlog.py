"""What a producer was given and has not got acknowledged: a queue per partition, within a bound of memory.

Queues tell of every change (`changed`), and are listed here by what is to be done about them: nothing here or
in `producer` and `node` looks through all queues.

    busy      have batches
    filling   have one that waits for more records
    lookups   have batches, and something has to be found out before they can be sent
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import MillstreamError
from kafka_client.producer.accumulator import PartitionQueue
from kafka_client.producer.batch import PendingBatch
from kafka_client.producer.gate import TransactionGate
from kafka_client.producer.identity import Identity
from kafka_client.producer.memory import Memory
from kafka_client.topic_partition import TopicPartition


class BrokerWatcher(Protocol):
    """Sends to one broker."""

    def note(self, tp: TopicPartition) -> None:
        """A queue that is or was sent there has changed."""


class Backlog:
    """The producer takes `memory` when it fills `queues`; here it is given back when a batch is done with."""

    def __init__(
        self,
        memory_bytes: int,
        *,
        halts: bool = False,
        gate: TransactionGate | None = None,
    ) -> None:
        self._halts = halts
        self.gate = gate
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.busy: dict[TopicPartition, PartitionQueue] = {}
        self.filling: dict[TopicPartition, PartitionQueue] = {}
        self.lookups: dict[TopicPartition, PartitionQueue] = {}
        self.lookup_wanted = asyncio.Event()
        """Set when a queue comes to the `lookups`."""
        self.watchers: dict[int, BrokerWatcher] = {}
        """Broker → who sends to it."""
        self.interrupts = 0
        """How often everything from some transaction on was given up: a send that waited for memory meanwhile
        must not queue its records."""
        self.memory = Memory(memory_bytes)
        self.records_failed = 0
        """Of batches that were given up."""

    def queue(self, tp: TopicPartition, identity: Identity) -> PartitionQueue:
        """The partition's queue; a new one produces as `identity`."""
        queue = self.queues.get(tp)
        if queue is None:
            queue = self.queues[tp] = PartitionQueue(tp, identity, self, halts=self._halts, gate=self.gate)
        return queue

    def changed(self, queue: PartitionQueue) -> None:
        """List the queue by what it is now; see `QueueWatcher`."""
        tp = queue.tp
        if queue.idle:
            self.busy.pop(tp, None)
        else:
            self.busy[tp] = queue
        if queue.is_filling:
            self.filling[tp] = queue
        elif self.filling:
            self.filling.pop(tp, None)
        if queue.needs_lookup:
            if tp not in self.lookups:
                self.lookups[tp] = queue
                self.lookup_wanted.set()
        elif self.lookups:
            self.lookups.pop(tp, None)
        node = queue.node
        if queue.listed_at != node:
            self._tell(queue.listed_at, tp)
            queue.listed_at = node
        self._tell(node, tp)

    def _tell(self, node: int, tp: TopicPartition) -> None:
        if node != NO_NODE:
            self.watchers[node].note(tp)

    def seal(self) -> None:
        """Nothing that is queued now waits for more records."""
        for queue in list(self.filling.values()):
            queue.seal()

    def free(self, batch: PendingBatch) -> None:
        """The batch is acked or given up: its memory can be used again."""
        size, batch.size = batch.size, 0
        if size and batch.error is not None:
            self.records_failed += batch.count
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
        self.interrupts += 1
        for queue in list(self.busy.values()):
            self.drop(queue, error, lambda batch: batch.transaction >= transaction)
        self.memory.fail(error)

    def abandon(self, error: MillstreamError) -> None:
        """Fail everything that is queued or under way, and every `send` that waits for room."""
        for queue in list(self.busy.values()):
            self.drop(queue, error)
        self.memory.fail(error)
