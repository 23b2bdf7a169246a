"""Which partitions one broker is asked for next, found out from what has changed."""

from __future__ import annotations

from heapq import heappop, heappush

from kafka_client.cluster.metadata import NO_NODE
from kafka_client.fetcher.buffer import FetchBuffer
from kafka_client.fetcher.position import FetchPosition
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import NO_UUID


class WantedPartitions:
    """`partitions` are to be asked for, in the order of asking; `touched` have changed, came or went since
    the caller cleared it.

    Those whose buffer is full (`held_back`) are looked at in every turn: they are at most as many as the
    buffer has shares. Those in a backoff, or read from a replica for some time, when that is over.
    """

    def __init__(self, node: int, buffer: FetchBuffer, share_least: int) -> None:
        self.partitions: dict[TopicPartition, FetchPosition] = {}
        self.touched: dict[TopicPartition, None] = {}
        self.held_back: dict[TopicPartition, None] = {}
        self.without_id: set[TopicPartition] = set()
        """Those whose topic has no id: Fetch 13 cannot name them."""
        self._node = node
        self._buffer = buffer
        self._share_least = share_least
        self.changed: dict[TopicPartition, None] = {}
        """Those to be looked at by `update`; whoever hears of a change adds them."""
        self._due: list[tuple[float, TopicPartition]] = []
        self._due_at: dict[TopicPartition, float] = {}
        for tp, held in buffer.partitions.items():
            if held.source == node:
                self.changed[tp] = None

    def served(self, tp: TopicPartition) -> None:
        """The partition got records: without a session a broker fills its answer in the order asked."""
        held = self.partitions.pop(tp, None)
        if held is not None:
            self.partitions[tp] = held

    def update(self, now: float) -> None:
        """Look at what has changed, at what is due, and at what was held back."""
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
        """When to look again though nothing changes; None: never."""
        return self._due[0][0] if self._due else None

    def _look_at(self, tp: TopicPartition, now: float, share: int) -> None:
        held = self._buffer.partitions.get(tp)
        if self.held_back:
            self.held_back.pop(tp, None)
        if held is not None and held.replica == self._node and held.replica_until <= now:
            held.read_from_leader()
        if held is None or held.source != self._node or not held.is_fetchable:
            self._leave_out(tp)
            self._due_at.pop(tp, None)
            return
        if held.not_before > now:
            self._leave_out(tp)
            self._look_again(tp, held.not_before)
        elif held.buffered_bytes >= share:
            self._leave_out(tp)
            self.held_back[tp] = None
        else:
            self.partitions[tp] = held
            self.touched[tp] = None
            if held.topic_id in (b"", NO_UUID):
                self.without_id.add(tp)
            elif self.without_id:
                self.without_id.discard(tp)
            if held.replica != NO_NODE:
                self._look_again(tp, held.replica_until)

    def _leave_out(self, tp: TopicPartition) -> None:
        if self.partitions.pop(tp, None) is not None:
            self.touched[tp] = None
            self.without_id.discard(tp)

    def _look_again(self, tp: TopicPartition, when: float) -> None:
        if self._due_at.get(tp) != when:
            self._due_at[tp] = when
            heappush(self._due, (when, tp))
