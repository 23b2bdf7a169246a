"""The state of one idempotent or transactional producer in a log. `state` changes it."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kafka_client.records.header import NO_SEQUENCE

REMEMBERED_BATCHES = 5
SEQUENCE_MASK = 0x7FFF_FFFF
NO_TRANSACTION = -1
NO_NUMBER = -1
"""The number of a transaction whose coordinator sends none: Apache Kafka's, or an operator."""


class BatchMemo(NamedTuple):
    """A batch of an idempotent producer; `timestamp` is when it was written, in ms."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        """The batch's first offset."""
        return self.last_offset - self.offset_delta


class MarkerMemo(NamedTuple):
    """The last marker of a numbered transaction that was written here while this broker led the partition.

    It is not in snapshots: a late marker from before a restart would have to arrive on a connection that
    ended with the process.
    """

    coordinator_epoch: int
    transaction_number: int
    offset: int


class Producer:
    """The state of one producer id. `next_sequence` is the base sequence that its next batch must have.

    `coordinator_epoch` is that of its last marker, `txn_first_offset` the first offset of its open
    transaction. Both are -1 if there is none.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_marker",
        "next_sequence",
        "timestamp",
        "txn_first_offset",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next_sequence = 0
        self.batches: deque[BatchMemo] = deque(maxlen=REMEMBERED_BATCHES)
        self.timestamp = -1
        self.coordinator_epoch = -1
        self.last_marker: MarkerMemo | None = None
        self.txn_first_offset = NO_TRANSACTION

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, -1 if nothing was written in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def enter(self, epoch: int) -> None:
        """Enter another epoch, whose batches start at sequence 0."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
            self.next_sequence = 0
