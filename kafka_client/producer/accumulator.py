"""Batches of one partition from `send` to their ack: filling, sequence numbers, order through retries.

No sockets, no clock: `producer` and `node` drive it and pass the time in, in seconds.

How order is kept (idempotent): up to five batches of a partition are in flight. When one fails, none is
sent until all of those are answered; then the failed ones go back to the front in their old order, with
their old sequence numbers, so that the broker recognises what it has already (KIP-98). An answer
OUT_OF_ORDER_SEQUENCE_NUMBER for the first of them is not explained by a batch before it: the broker lost
our state, or a batch before was given up. Then the epoch is raised and sequences begin at 0 (KIP-360).

A queue that halts on failure does neither that nor go on behind a batch that was given up: everything behind
fails, too, until `continue_at`. So what is in the log is what was sent up to some batch, without a gap.

In a transaction (a queue with a `TransactionGate`) a batch that fails is the end of the transaction, which
its producer hears of by the gate; the queue itself goes on, and the epoch is the transaction coordinator's to
raise.
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
"""The broker's idea of our sequence is not ours."""
HALTING = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)
"""Those of them that say that something was written which was not ours, or not in this order."""


class QueueWatcher(Protocol):
    """Hears of each change that may make another thing to be done about a queue.

    Records that join a batch are none: the batch is due when it was.
    """

    def changed(self, queue: PartitionQueue) -> None:
        """Look at the queue again."""


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
        """Why nothing is sent any more, in a queue that halts on failure."""
        self.halts = 0
        """How often it has halted: a send that waited for memory meanwhile must not queue its records."""
        self._halting = halts
        self._watcher = watcher
        self._gate = gate
        self.identity: Identity | None = identity
        """None while a new producer id is asked for."""
        self.node = NO_NODE
        self.listed_at = NO_NODE
        """The node the watcher listed it at."""
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
        """Whether nothing is waiting or on its way."""
        return not (self.waiting or self.in_flight or self._failed)

    @property
    def is_filling(self) -> bool:
        """Whether the newest batch waits for more records."""
        return bool(self.waiting) and not self.waiting[-1].sealed

    @property
    def needs_lookup(self) -> bool:
        """Whether something has to be found out before its batches can be sent."""
        return not self.idle and (self.node == NO_NODE or self.identity is None)

    @property
    def is_held_back(self) -> bool:
        """Whether the next batch waits for the gate."""
        gate = self._gate
        return (
            gate is not None and bool(self.waiting) and not gate.admits(self.tp, self.waiting[0].transaction)
        )

    def batches(self) -> list[PendingBatch]:
        """All of them."""
        return [*self.in_flight, *self._failed, *self.waiting]

    # --- filling ---

    def open_batch(self, now: float, limit: int, size: int) -> PendingBatch:
        """The batch that takes `size` more bytes: the newest if it has room below `limit`, or else a new
        one.
        """
        if self.waiting:
            newest = self.waiting[-1]
            if not newest.sealed and newest.size + size <= limit:
                return newest
        batch = self._new_batch(now)
        self._watcher.changed(self)
        return batch

    def _new_batch(self, now: float) -> PendingBatch:
        """A new batch behind all others."""
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
        """The open batch, if there is one, waits for no more records."""
        if self.is_filling:
            self.waiting[-1].sealed = True
            self._watcher.changed(self)

    # --- sending ---

    def found_leader(self, node: int) -> None:
        """The partition's batches go to this broker."""
        self.node, self.missing_since = node, None
        self._watcher.changed(self)

    def lose_leader(self) -> None:
        """The partition's leader has to be looked up."""
        self.node = NO_NODE
        self._watcher.changed(self)

    def back_off(self, until: float) -> None:
        """Send nothing before."""
        self._not_before = until
        self._watcher.changed(self)

    def due_at(self, linger: float, max_in_flight: int) -> float:
        """When the next batch may be sent: now (0) if it is full, after the linger, or never (inf)."""
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
        """Whether another batch may be in flight: so few that the broker still remembers the oldest one.

        A broker that does not know a producer takes any sequence from it. So the first batch of an
        identity goes alone, lest one behind it gets in before it.
        """
        if not self.in_flight:
            return True
        span = self.waiting[0].order - self.in_flight[0].order
        return self._established and len(self.in_flight) < max_in_flight and span < max_in_flight

    def take(self, codec: Codec, level: int | None) -> PendingBatch:
        """The next batch, sealed and stamped; it counts as in flight until `acked` or
        `retry` or `give_up`.
        """
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
        # Only now: a record that cannot be encoded must not vanish with its future never done.
        self.in_flight.append(self.waiting.popleft())
        self._watcher.changed(self)
        return batch

    # --- answers ---

    def acked(self, batch: PendingBatch, base_offset: int | None) -> None:
        """The broker has the batch."""
        self.in_flight.remove(batch)
        self._established = self._established or batch.identity == self.identity
        if not batch.done:
            batch.acked(base_offset)
        self._maybe_resume()
        self._watcher.changed(self)

    def give_up(self, batch: PendingBatch, error: MillstreamError) -> None:
        """Trying again would not help."""
        self.in_flight.remove(batch)
        if not batch.done:
            batch.failed(error)
        self._lost(batch, error)
        self._maybe_resume()
        self._watcher.changed(self)

    def retry(self, batch: PendingBatch, error: MillstreamError) -> None:
        """To be sent again, in its old place, once everything in flight is answered."""
        self.in_flight.remove(batch)
        batch.error = error
        self._failed.append(batch)
        self._maybe_resume()
        self._watcher.changed(self)

    def split(self, batch: PendingBatch) -> None:
        """Too large for the broker: two halves take its place."""
        self.in_flight.remove(batch)
        self._failed.extend(batch.halves())
        batch.done = True
        self._maybe_resume()
        self._watcher.changed(self)

    def drop(self, which: Callable[[PendingBatch], bool], error: MillstreamError) -> list[PendingBatch]:
        """Give up some batches; returns them.

        One that is in flight stays there until its answer comes, to keep its place in the order.
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
        """With nothing in flight, what failed goes to the front again, raising the epoch if
        that is needed.
        """
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
        """The log will not have this batch: what is behind it must not go on as if nothing had been."""
        if self._gate is not None:
            self._gate.on_failure(batch.transaction, error)
        else:
            self.halt(error)

    def halt(self, error: MillstreamError) -> None:
        """Send nothing more, if this queue is one that halts; the caller drops what is queued."""
        if self._halting and self.halted is None:
            self.halted = error
            self.halts += 1
            self._watcher.changed(self)

    def continue_at(self, identity: Identity, sequence: int) -> None:
        """What is queued from now on has these sequence numbers; end a halt. The queue has to be idle."""
        assert self.idle, f"{self.tp} has batches under way"
        self.identity, self.halted = identity, None
        self._next_sequence = sequence
        self._established = False

    def _follow(self, identity: Identity) -> None:
        """The coordinator gave the producer another identity. Nothing is in flight then.

        A broker that knows the producer id takes no sequence but 0 in a new epoch: batches need not go alone.
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
        """A new producer id, after the epochs of the old one ran out."""
        self.identity = identity
        self._next_sequence = 0
        self._established = False
        self._watcher.changed(self)
