"""Batches of one partition from `send` to their ack: filling, sequence numbers, order through retries.

No sockets, no clock: `producer` and `node` drive it and pass the time in, in seconds.

How order is kept (idempotent): up to five batches of a partition are in flight. When one fails, none is
sent until all in flight are answered. Then the failed batches go back to the front of the queue in their old
order. They keep their sequence numbers, so that the broker recognises duplicates (KIP-98). If the first one
is answered OUT_OF_ORDER_SEQUENCE_NUMBER, no batch before it explains the error: the broker lost our state, or
an earlier batch was given up. Then the epoch is raised and sequences begin at 0 (KIP-360).

A queue that halts on failure does not raise its epoch, and sends nothing after a batch that was given up: all
later batches fail, too, until `continue_at`. So the log has all records up to some batch, without a gap.

In a transaction (a queue with a `TransactionGate`) a batch that fails is the end of the transaction, which
the gate reports to the producer. The queue itself goes on; only the transaction coordinator raises the epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from kafka_client.producer.batch import SEQUENCE_MASK, PendingBatch
from kafka_client.producer.delivery import Delivery
from kafka_client.producer.gate import NO_TRANSACTION, TransactionGate
from kafka_client.producer.identity import Identity
from kafka_client.records import BatchHeader, Codec, NewRecord
from kafka_client.topic_partition import TopicPartition

EPOCH_MAX = 32_767

STATE_LOST = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
)
"""Errors of a broker that does not expect our next sequence number."""
HALTING = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)
"""Errors of `STATE_LOST` after which the log may have another producer's batches, or ours out of order."""


class QueueWatcher(Protocol):
    """Receives each change of a queue that may change what has to be done with it.

    Records that join a batch are no such change: the batch is due at the same time.
    """

    def changed(self, queue: PartitionQueue) -> None:
        """Check again what has to be done with the queue."""


class PartitionQueue:
    """The batches of one partition, oldest first: waiting, in flight, failed and to be sent again."""

    def __init__(
        self,
        tp: TopicPartition,
        identity: Identity,
        watcher: QueueWatcher,
        *,
        halts: bool = False,
        gate: TransactionGate | None = None,
    ) -> None:
        self.tp = tp
        self.halted: MillstreamError | None = None
        """The error that halted a queue that halts on failure; nothing is sent while it is set."""
        self.halts = 0
        """How often the queue halted; a `send` that waited for memory at a halt must not queue records."""
        self.trouble: MillstreamError | None = None
        """The error of the last attempt to send, None if the last batch was acknowledged."""
        self._halting = halts
        self._watcher = watcher
        self._gate = gate
        self.identity: Identity | None = identity
        """The identity of the next batches; None until a new producer id is there."""
        self.node = NO_NODE
        self.listed_at = NO_NODE
        """The node at which the watcher listed the queue."""
        self.missing_since: float | None = None
        self.waiting: deque[PendingBatch] = deque()
        self.in_flight: list[PendingBatch] = []
        self._failed: list[PendingBatch] = []
        self._not_before = 0.0
        self._next_sequence = 0
        self._next_order = 0
        self._established = False

    @property
    def idle(self) -> bool:
        """True if no batch waits or is in flight."""
        return not (self.waiting or self.in_flight or self._failed)

    @property
    def is_filling(self) -> bool:
        """True if the newest batch waits for more records."""
        return bool(self.waiting) and not self.waiting[-1].sealed

    @property
    def needs_lookup(self) -> bool:
        """True if batches wait for the partition's leader or a producer id to be looked up."""
        return not self.idle and (self.node == NO_NODE or self.identity is None)

    @property
    def is_held_back(self) -> bool:
        """True if the next batch waits for the gate."""
        gate = self._gate
        return (
            gate is not None and bool(self.waiting) and not gate.admits(self.tp, self.waiting[0].transaction)
        )

    def batches(self) -> list[PendingBatch]:
        """Return all batches that are not acknowledged: in flight, failed and waiting."""
        return [*self.in_flight, *self._failed, *self.waiting]

    # --- filling ---

    def open_batch(self, now: float, limit: int, size: int) -> PendingBatch:
        """Return a batch with room for `size` more bytes below `limit`: the newest one, or else a new one."""
        if self.waiting:
            newest = self.waiting[-1]
            if not newest.sealed and newest.size + size <= limit:
                return newest
        batch = self._new_batch(now)
        self._watcher.changed(self)
        return batch

    def _new_batch(self, now: float) -> PendingBatch:
        """Append a new batch after all others, and seal the one before."""
        if self.waiting:
            self.waiting[-1].sealed = True
        batch = PendingBatch(self._next_order, now, self._gate.filling if self._gate else NO_TRANSACTION)
        self._next_order += 1
        self.waiting.append(batch)
        return batch

    def put(self, batch: PendingBatch, records: Sequence[NewRecord], size: int, delivery: Delivery) -> None:
        """Add records of one delivery to an open batch."""
        batch.deliveries.append((delivery, len(batch.records)))
        delivery.hold()
        batch.records.extend(records)
        batch.size += size

    def put_raw(self, header: BatchHeader, data: memoryview, now: float, delivery: Delivery) -> PendingBatch:
        """Add a batch to pass on as it is."""
        batch = self._new_batch(now)
        batch.raw, batch.size, batch.sealed = (header, data), header.size, True
        batch.deliveries.append((delivery, 0))
        delivery.hold()
        self._watcher.changed(self)
        return batch

    def seal(self) -> None:
        """Let the open batch, if there is one, wait for no more records."""
        if self.is_filling:
            self.waiting[-1].sealed = True
            self._watcher.changed(self)

    # --- sending ---

    def found_leader(self, node: int) -> None:
        """Send the partition's batches to this broker from now on."""
        self.node, self.missing_since = node, None
        self._watcher.changed(self)

    def lose_leader(self) -> None:
        """Have the partition's leader looked up again."""
        self.node = NO_NODE
        self._watcher.changed(self)

    def back_off(self, until: float) -> None:
        """Send nothing before this time."""
        self._not_before = until
        self._watcher.changed(self)

    def due_at(self, linger: float, max_in_flight: int) -> float:
        """Return when the next batch may be sent: 0 if it is full, else after the linger; inf for never."""
        if not self.waiting or self._failed or self.halted or not self._is_open(max_in_flight):
            return float("inf")
        if self.identity is None:
            return float("inf")
        head = self.waiting[0]
        if self._gate is not None and not self._gate.admits(self.tp, head.transaction):
            return float("inf")
        due = 0.0 if head.sealed or head.data is not None else head.created_at + linger
        return max(due, self._not_before)

    def _is_open(self, max_in_flight: int) -> bool:
        """Return True if another batch may be sent now.

        The broker remembers a producer's last `max_in_flight` batches, so no more may be in flight. A
        broker that does not know a producer accepts any sequence number. So the first batch of a producer
        id is sent alone: a later batch could overtake it.
        """
        if not self.in_flight:
            return True
        span = self.waiting[0].order - self.in_flight[0].order
        return self._established and len(self.in_flight) < max_in_flight and span < max_in_flight

    def take(self, codec: Codec, level: int | None) -> PendingBatch:
        """Return the next batch, sealed and stamped; it is in flight until `acked`, `retry` or `give_up`."""
        if self._gate is not None and self.identity != self._gate.identity:
            self._follow(self._gate.identity)
        assert self.identity is not None
        batch = self.waiting[0]
        batch.sealed = True
        if not self.identity.idempotent:
            if batch.data is None:
                batch.stamp(self.identity, -1, codec, level)
        elif batch.data is None or batch.identity != self.identity:
            if batch.sequence < 0 or batch.identity != self.identity:
                batch.sequence = self._next_sequence
                self._next_sequence = (self._next_sequence + batch.count) & SEQUENCE_MASK
            batch.stamp(self.identity, batch.sequence, codec, level)
        if self._gate is not None:
            self._gate.last_sent = batch.transaction
        # Only after `stamp`: a batch that cannot be encoded must stay queued, or its future is never done.
        self.in_flight.append(self.waiting.popleft())
        self._watcher.changed(self)
        return batch

    # --- answers ---

    def acked(self, batch: PendingBatch, base_offset: int | None) -> None:
        """Complete a batch that the broker has acknowledged."""
        self.in_flight.remove(batch)
        self.trouble = None
        self._established = self._established or batch.identity == self.identity
        if not batch.done:
            batch.acked(base_offset)
        self._maybe_resume()
        self._watcher.changed(self)

    def give_up(self, batch: PendingBatch, error: MillstreamError) -> None:
        """Fail a batch whose error is final."""
        self.in_flight.remove(batch)
        if not batch.done:
            batch.failed(error)
        self._lost(batch, error)
        self._maybe_resume()
        self._watcher.changed(self)

    def retry(self, batch: PendingBatch, error: MillstreamError) -> None:
        """Send a batch again, in its old place, once all batches in flight are answered."""
        self.in_flight.remove(batch)
        batch.error = self.trouble = error
        self._failed.append(batch)
        self._maybe_resume()
        self._watcher.changed(self)

    def split(self, batch: PendingBatch) -> None:
        """Replace a batch that is too large for the broker by its two halves."""
        self.in_flight.remove(batch)
        self._failed.extend(batch.halves())
        batch.done = True
        self._maybe_resume()
        self._watcher.changed(self)

    def drop(self, which: Callable[[PendingBatch], bool], error: MillstreamError) -> list[PendingBatch]:
        """Give up the batches for which `which` is true, and return them.

        A batch in flight stays in flight until its answer comes, to keep its place in the order.
        """
        dropped = [batch for batch in self.batches() if not batch.done and which(batch)]
        for batch in dropped:
            batch.failed(error)
            batch.sealed = True
        if dropped:
            self._lost(dropped[0], error)
            self._failed = [batch for batch in self._failed if not batch.done]
            self.waiting = deque(batch for batch in self.waiting if not batch.done)
            self._maybe_resume()
            self._watcher.changed(self)
        return dropped

    def _maybe_resume(self) -> None:
        """Put failed batches to the front again once nothing is in flight; raise the epoch if needed."""
        if self.in_flight or not self._failed:
            return
        again = sorted((batch for batch in self._failed if not batch.done), key=lambda batch: batch.order)
        self._failed = []
        self.waiting.extendleft(reversed(again))
        first = again[0].error if again else None
        if isinstance(first, KafkaError) and first.code in STATE_LOST:
            if self._gate is not None:
                self._lost(again[0], first)
            elif self._halting and first.code in HALTING:
                self.halt(first)
            else:
                self._begin_epoch()
        for batch in again:
            batch.error = None

    def _lost(self, batch: PendingBatch, error: MillstreamError) -> None:
        """Fail the transaction or halt the queue: this batch will be missing from the log."""
        if self._gate is not None:
            self._gate.on_failure(batch.transaction, error)
        else:
            self.halt(error)

    def halt(self, error: MillstreamError) -> None:
        """Send nothing more, if this queue halts on failure; the caller drops its batches."""
        if self._halting and self.halted is None:
            self.halted = error
            self.halts += 1
            self._watcher.changed(self)

    def continue_at(self, identity: Identity, sequence: int) -> None:
        """End a halt, and number the next records from `sequence`. The queue has to be idle."""
        assert self.idle, f"{self.tp} has batches under way"
        self.identity, self.halted, self.trouble = identity, None, None
        self._next_sequence = sequence
        self._established = False

    def _follow(self, identity: Identity) -> None:
        """Produce under the identity that the coordinator has assigned. Nothing may be in flight.

        In a new epoch, a broker that knows the producer id accepts no first sequence but 0. So the first
        batch need not be sent alone.
        """
        assert not self.in_flight, f"{self.tp} has batches under way"
        self._established = (
            self._established
            and self.identity is not None
            and identity.producer_id == self.identity.producer_id
        )
        self.identity = identity
        self._next_sequence = 0

    def _begin_epoch(self) -> None:
        assert self.identity is not None
        old = self.identity
        self.identity = Identity(old.producer_id, old.epoch + 1) if old.epoch < EPOCH_MAX else None
        self._next_sequence = 0
        self._established = False

    def renew(self, identity: Identity) -> None:
        """Produce under a new producer id, after the epochs of the old one ran out."""
        self.identity = identity
        self._next_sequence = 0
        self._established = False
        self._watcher.changed(self)
