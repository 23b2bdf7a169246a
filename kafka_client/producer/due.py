"""The queues whose batches one broker is sent next, kept up to date by changes."""

from __future__ import annotations

from heapq import heappop, heappush

from kafka_client.producer.accumulator import PartitionQueue
from kafka_client.producer.backlog import Backlog
from kafka_client.topic_partition import TopicPartition

NEVER = float("inf")


class DueQueues:
    """The queues of one broker by when they are due; `ready` have a batch to send, in the order of sending.

    A queue that lingers or backs off is checked again at the end of that time. A queue whose batch waits for
    its transaction (`held_back`) is checked when the gate has changed. `linger` is in seconds;
    `max_in_flight` is per partition.
    """

    def __init__(self, node: int, backlog: Backlog, *, linger: float, max_in_flight: int) -> None:
        self.ready: dict[TopicPartition, PartitionQueue] = {}
        self.held_back: dict[TopicPartition, PartitionQueue] = {}
        self.changed: dict[TopicPartition, None] = {}
        """Queues that `update` has to check; `ProduceNode.note` adds each queue that changes."""
        self._node = node
        self._backlog = backlog
        self._linger = linger
        self._max_in_flight = max_in_flight
        self._due: list[tuple[float, TopicPartition]] = []
        self._due_at: dict[TopicPartition, float] = {}
        self._gate_changes = 0

    def update(self, now: float) -> None:
        """Check the queues that have changed or are due; all ready and held back ones if the gate changed."""
        while self._due and self._due[0][0] <= now:
            when, tp = heappop(self._due)
            if self._due_at.get(tp) == when:
                del self._due_at[tp]
                self.changed[tp] = None
        gate = self._backlog.gate
        if gate is not None and gate.changes != self._gate_changes:
            self._gate_changes = gate.changes
            self.changed.update(dict.fromkeys(self.held_back))
            self.changed.update(dict.fromkeys(self.ready))
        changed, self.changed = self.changed, {}
        for tp in changed:
            self._look_at(tp, now)

    def first(self) -> PartitionQueue | None:
        """Return the queue whose turn it is to have a batch sent, or None."""
        return next(iter(self.ready.values()), None)

    def served(self, queue: PartitionQueue) -> None:
        """Note that a batch of the queue was taken; its next turn comes after the other queues'."""
        del self.ready[queue.tp]
        self.changed[queue.tp] = None

    def due_at(self) -> float | None:
        """Return when to `update` again if nothing changes, or None for never."""
        return self._due[0][0] if self._due else None

    def _look_at(self, tp: TopicPartition, now: float) -> None:
        queue = self._backlog.queues[tp]
        due = NEVER
        if queue.node == self._node:
            due = queue.due_at(self._linger, self._max_in_flight)
        if due <= now:
            self.ready[tp] = queue
        else:
            self.ready.pop(tp, None)
        if now < due < NEVER:
            self._look_again(tp, due)
        else:
            self._due_at.pop(tp, None)
        if queue.node == self._node and queue.is_held_back:
            self.held_back[tp] = queue
        elif self.held_back:
            self.held_back.pop(tp, None)

    def _look_again(self, tp: TopicPartition, when: float) -> None:
        if self._due_at.get(tp) != when:
            self._due_at[tp] = when
            heappush(self._due, (when, tp))
