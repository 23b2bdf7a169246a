"""The partitions to request next from one broker, updated from what has changed."""

from __future__ import annotations

from heapq import heappop, heappush

from kafka_client.cluster.metadata import NO_NODE
from kafka_client.fetcher.buffer import FetchBuffer
from kafka_client.fetcher.position import FetchPosition
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import NO_UUID


class RequestedPartitions:
    """The `partitions` to request, in their order; `touched` have changed since the caller cleared it.

    Partitions whose buffer is full (`held_back`) are checked every time: there are at most as many as the
    buffer has shares. Partitions in a backoff, or read from a replica for a time, are checked when that is
    over.
    """

    def __init__(self, node: int, buffer: FetchBuffer, share_least: int) -> None:
        self.partitions: dict[TopicPartition, FetchPosition] = {}
        self.touched: dict[TopicPartition, None] = {}
        self.held_back: dict[TopicPartition, None] = {}
        self.without_id: set[TopicPartition] = set()
        """Partitions whose topic has no id: Fetch 13 cannot name them."""
        self._node = node
        self._buffer = buffer
        self._share_least = share_least
        self.changed: dict[TopicPartition, None] = {}
        """Partitions for `update` to check; every change is added here."""
        self._due: list[tuple[float, TopicPartition]] = []
        self._due_at: dict[TopicPartition, float] = {}
        for tp, position in buffer.partitions.items():
            if position.source == node:
                self.changed[tp] = None

    def served(self, tp: TopicPartition) -> None:
        """Move a partition with records to the end: without a session a broker fills its response in
        request order.
        """
        position = self.partitions.pop(tp, None)
        if position is not None:
            self.partitions[tp] = position

    def update(self, now: float) -> None:
        """Check partitions that have changed, that are due, and that were held back."""
        while self._due and self._due[0][0] <= now:
            when, tp = heappop(self._due)
            if self._due_at.get(tp) == when:
                del self._due_at[tp]
                self.changed[tp] = None
        if self.held_back:
            self.changed.update(self.held_back)
        if not self.changed:
            return
        share = self._buffer.share_bytes(self._share_least)
        while self.changed:
            changed, self.changed = self.changed, {}
            for tp in changed:
                self._look_at(tp, now, share)

    def due_at(self) -> float | None:
        """Return the time of the next check if nothing changes; None: never."""
        return self._due[0][0] if self._due else None

    def _look_at(self, tp: TopicPartition, now: float, share: int) -> None:
        position = self._buffer.partitions.get(tp)
        if self.held_back:
            self.held_back.pop(tp, None)
        if position is not None and position.replica == self._node and position.replica_until <= now:
            position.read_from_leader()
        if position is None or position.source != self._node or not position.is_fetchable:
            self._leave_out(tp)
            self._due_at.pop(tp, None)
            return
        if position.not_before > now:
            self._leave_out(tp)
            self._look_again(tp, position.not_before)
        elif position.buffered_bytes >= share:
            self._leave_out(tp)
            self.held_back[tp] = None
        else:
            self.partitions[tp] = position
            self.touched[tp] = None
            if position.topic_id in (b"", NO_UUID):
                self.without_id.add(tp)
            elif self.without_id:
                self.without_id.discard(tp)
            if position.replica != NO_NODE:
                self._look_again(tp, position.replica_until)

    def _leave_out(self, tp: TopicPartition) -> None:
        if self.partitions.pop(tp, None) is not None:
            self.touched[tp] = None
            self.without_id.discard(tp)

    def _look_again(self, tp: TopicPartition, when: float) -> None:
        if self._due_at.get(tp) != when:
            self._due_at[tp] = when
            heappush(self._due, (when, tp))
