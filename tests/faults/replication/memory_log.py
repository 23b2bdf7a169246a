"""A replica's log in memory, which may lose what was not flushed; its leader epochs are the real table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from kafka_client.topic_partition import TopicPartition
from logd.replication import Truncate
from logd.storage.log.epochs import LeaderEpochs

TP = TopicPartition("orders", 0)
NO_PRODUCER = -1


class Batch(NamedTuple):
    """Records that were produced together; `sequence` counts an idempotent producer's batches."""

    base_offset: int
    epoch: int
    values: tuple[object, ...]
    producer_id: int = NO_PRODUCER
    sequence: int = -1

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.values)


class EpochsFall(Exception):
    """A leader is to write in an older epoch than there is in its log already."""


_base = attrgetter("base_offset")


class MemoryLog:
    """Fits `ReplicaLog` and `LeaderLog`. `flushed_to` is what a power loss leaves for sure."""

    def __init__(self) -> None:
        self.tp = TP
        self.batches: list[Batch] = []
        self.epochs = LeaderEpochs()
        self.log_start_offset = self.log_end_offset = self.flushed_to = 0
        self.removal_offset = 0
        self.last_batches: dict[int, Batch] = {}
        """The last batch of each idempotent producer."""

    # What the core asks

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    def epoch_of(self, offset: int) -> int:
        return self.epochs.epoch_of(offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # Writing

    def begin_epoch(self, epoch: int) -> None:
        if epoch <= self.latest_epoch:
            raise EpochsFall(f"leader epoch {epoch} begins behind {self.epochs.entries}")
        self.epochs.begin(epoch, self.log_end_offset)

    def append(self, batch: Batch) -> Batch:
        """Append a batch at the end, as a leader does."""
        return self.replicate(batch._replace(base_offset=self.log_end_offset))

    def replicate(self, batch: Batch) -> Batch:
        """Append a batch as it is, as a follower does."""
        assert batch.base_offset >= self.log_end_offset, (batch, self.log_end_offset)
        self.batches.append(batch)
        self.log_end_offset = batch.end_offset
        self.epochs.assign(batch.epoch, batch.base_offset)
        if batch.producer_id != NO_PRODUCER:
            self.last_batches[batch.producer_id] = batch
        return batch

    def truncate(self, order: Truncate) -> None:
        """Whole batches go: the log may end before the offset."""
        if order.fully:
            self.batches.clear()
            self.epochs.truncate_from_end(-1)
            self.log_start_offset = self.log_end_offset = self.flushed_to = order.offset
        else:
            while self.batches and self.batches[-1].end_offset > order.offset:
                self.log_end_offset = self.batches.pop().base_offset
            self.log_end_offset = min(self.log_end_offset, order.offset)  # compaction leaves gaps
            self.flushed_to = min(self.flushed_to, self.log_end_offset)
            self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
            self.epochs.truncate_from_end(self.log_end_offset)
        self._find_producers()

    def delete_before(self, offset: int) -> None:
        """DeleteRecords: batches that are wholly before it go."""
        self.log_start_offset = offset
        while self.batches and self.batches[0].end_offset <= offset:
            self.batches.pop(0)
        self.epochs.truncate_from_start(offset)

    def flush(self) -> None:
        self.flushed_to = self.log_end_offset

    def lose_power(self, log_end: int) -> None:
        """Truncate to `log_end`, which no flush has passed."""
        assert log_end >= self.flushed_to
        self.truncate(Truncate(log_end))

    def _find_producers(self) -> None:
        self.last_batches = {
            batch.producer_id: batch for batch in self.batches if batch.producer_id != NO_PRODUCER
        }

    # Reading

    def read(self, offset: int, end: int, count: int) -> list[Batch]:
        """At most `count` batches from the one that holds `offset`, all of them before `end`."""
        at = bisect_right(self.batches, offset, key=_base)
        if at and self.batches[at - 1].end_offset > offset:
            at -= 1
        return [batch for batch in self.batches[at : at + count] if batch.end_offset <= end]

    def records(self) -> Iterator[tuple[int, int, object]]:
        """(offset, leader epoch, value) from the log start on."""
        for batch in self.batches:
            for offset, value in enumerate(batch.values, batch.base_offset):
                if offset >= self.log_start_offset:
                    yield offset, batch.epoch, value
