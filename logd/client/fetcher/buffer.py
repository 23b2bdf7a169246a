"""The partitions a fetcher has, and what is buffered of them, within a bound."""

from __future__ import annotations

import itertools

from logd.client.fetcher.fetched import Fetched
from logd.client.fetcher.position import FetchPosition
from logd.errors import MillstreamError
from logd.topic_partition import TopicPartition


class FetchBuffer:
    """`partitions` are served in their order. `reserved_bytes` are asked for and not there yet.

    `max_bytes` may be passed by one batch per broker, since a batch is never cut.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.reserved_bytes = 0
        self.partitions: dict[TopicPartition, FetchPosition] = {}
        self._versions = itertools.count(1)

    def add(self, tp: TopicPartition, offset: int, epoch: int) -> None:
        """Have this partition too, from `offset` on; the record before it was of leader epoch `epoch`."""
        self.partitions[tp] = FetchPosition(tp, offset, epoch, next(self._versions))

    def seek(self, tp: TopicPartition, offset: int, epoch: int) -> None:
        """Go on from `offset`, before which leader epoch `epoch` ended or goes on; what is buffered of the
        partition is dropped.
        """
        self.partitions[tp].seek(offset, epoch, next(self._versions))

    def drop(self, held: FetchPosition) -> None:
        """Drop what is buffered of the partition, to be fetched again from its position on."""
        held.drop_buffered()
        held.version = next(self._versions)

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
                self.drop(held)

    def take(self, max_bytes: int, max_records: int) -> tuple[list[Fetched], set[int]]:
        """Hand out what is buffered, up to about so much; also the brokers it gives room to."""
        taken: list[Fetched] = []
        size = records = 0
        full = False
        drained: list[FetchPosition] = []
        for held in self.partitions.values():
            if held.paused or not held.buffered:
                continue
            while held.buffered and not full:
                fetched, was_cut = held.take(max_bytes - size, max_records - records)
                taken.append(fetched)
                size += len(fetched.buffer)
                records += fetched.record_count
                full = was_cut or size >= max_bytes or records >= max_records
            drained.append(held)
            if full:
                break
        # A partition that was served goes to the end, so that a busy one cannot keep others waiting.
        for held in drained:
            self.partitions[held.tp] = self.partitions.pop(held.tp)
        return taken, {held.node for held in drained}

    def take_error(self) -> MillstreamError | None:
        """The error of a partition that has nothing else to hand out; each is given once."""
        for held in self.partitions.values():
            if held.error is not None and not held.buffered:
                held.raised, held.error = held.error, None
                return held.raised
        return None
