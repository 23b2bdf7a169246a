"""The partitions a fetcher has, and what is buffered of them, within a bound."""

from __future__ import annotations

import itertools

from logd.client.cluster.metadata import TopicPartition
from logd.client.fetcher.fetched import Fetched
from logd.client.fetcher.position import FetchPosition
from logd.errors import MillstreamError


class FetchBuffer:
    """`partitions` are served in their order. `reserved_bytes` are asked for and not there yet.

    `max_bytes` may be passed by one batch per broker, since a batch is never cut.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.reserved_bytes = 0
        self.partitions: dict[TopicPartition, FetchPosition] = {}
        self._epochs = itertools.count(1)

    def add(self, tp: TopicPartition, offset: int) -> None:
        """Have this partition too, from `offset` on."""
        self.partitions[tp] = FetchPosition(tp, offset, next(self._epochs))

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Go on from `offset`; what is buffered of the partition is dropped."""
        self.partitions[tp].seek(offset, next(self._epochs))

    @property
    def buffered_bytes(self) -> int:
        """Bytes waiting to be handed out."""
        return sum(held.buffered_bytes for held in self.partitions.values())

    def free_bytes(self) -> int:
        """Bytes that may still be asked for. Paused partitions must not keep the others from being fetched:
        where nothing else fills the buffer, theirs is given up, to be fetched again later.
        """
        free = self.max_bytes - self.reserved_bytes - self.buffered_bytes
        if free <= 0 and not any(held.buffered and not held.paused for held in self.partitions.values()):
            self._evict_paused()
            free = self.max_bytes - self.reserved_bytes
        return free

    def _evict_paused(self) -> None:
        for held in self.partitions.values():
            if held.paused:
                held.drop_buffered()
                held.epoch = next(self._epochs)

    def take(self, max_bytes: int | None) -> tuple[list[Fetched], set[int]]:
        """Hand out what is buffered, up to about `max_bytes`; also the brokers it gives room to."""
        taken: list[Fetched] = []
        size = 0
        drained: list[FetchPosition] = []
        for held in self.partitions.values():
            if held.paused or not held.buffered:
                continue
            if max_bytes is not None and size >= max_bytes:
                break
            while held.buffered and (max_bytes is None or size < max_bytes):
                taken.append(held.take())
                size += len(taken[-1].buffer)
            drained.append(held)
        if max_bytes is not None:
            # Whoever was served goes to the end, so that a busy partition cannot keep others waiting.
            for held in drained:
                self.partitions[held.tp] = self.partitions.pop(held.tp)
        return taken, {held.node for held in drained}

    def take_error(self) -> MillstreamError | None:
        """The error of a partition that has nothing else to hand out; each is given once."""
        for held in self.partitions.values():
            if held.error is not None and not held.buffered:
                error, held.error = held.error, None
                return error
        return None
