"""A producer's records that are not acknowledged yet: a queue per partition, within a bound of memory.

Queues report every change (`changed`), and are listed here by what has to be done with them. So neither this
module nor `producer` and `node` scan all queues.

    busy      queues with batches
    filling   queues with a batch that waits for more records
    lookups   queues with batches that wait for a leader or a producer id
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
    """A sender to one broker."""

    def note(self, tp: TopicPartition) -> None:
        """Note a change of a queue that is or was sent to this broker."""


class Backlog:
    """A producer's queues and their memory, which `send` takes and a completed batch gives back."""

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
        """Set when a queue joins `lookups`."""
        self.watchers: dict[int, BrokerWatcher] = {}
        """Broker → its sender."""
        self.interrupts = 0
        """How often all batches from a transaction on were given up.

        A `send` that waited for memory during such an interrupt must not queue its records.
        """
        self.memory = Memory(memory_bytes)
        self.records_failed = 0
        """Number of records in batches that were given up."""

    def queue(self, tp: TopicPartition, identity: Identity) -> PartitionQueue:
        """Return the partition's queue; a new one produces as `identity`."""
        queue = self.queues.get(tp)
        if queue is None:
            queue = self.queues[tp] = PartitionQueue(tp, identity, self, halts=self._halts, gate=self.gate)
        return queue

    def changed(self, queue: PartitionQueue) -> None:
        """List the queue by its new state; see `QueueWatcher`."""
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
        """Let no batch that is queued now wait for more records."""
        for queue in list(self.filling.values()):
            queue.seal()

    def free(self, batch: PendingBatch) -> None:
        """Release the memory of a batch that is acknowledged or given up."""
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
        """Give up a queue's batches, or those for which `which` is true."""
        for batch in queue.drop(which, error):
            self.free(batch)

    def drop_halted(self, queue: PartitionQueue) -> None:
        """Give up the batches of a queue that has halted."""
        if queue.halted is not None:
            self.drop(queue, queue.halted)

    def abandon_from(self, transaction: int, error: MillstreamError) -> None:
        """Fail the batches of this transaction and later ones, and every `send` that waits for memory."""
        self.interrupts += 1
        for queue in list(self.busy.values()):
            self.drop(queue, error, lambda batch: batch.transaction >= transaction)
        self.memory.fail(error)

    def abandon(self, error: MillstreamError) -> None:
        """Fail all batches that are queued or in flight, and every `send` that waits for memory."""
        for queue in list(self.busy.values()):
            self.drop(queue, error)
        self.memory.fail(error)
