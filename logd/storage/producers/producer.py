"""One idempotent or transactional producer, as a log remembers it. What becomes of it: `state`."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kafka_client.records.header import NO_SEQUENCE

REMEMBERED_BATCHES = 5
SEQUENCE_MASK = 0x7FFF_FFFF
NO_TRANSACTION = -1
NO_NUMBER = -1
"""The number of a transaction whose coordinator gives none: Apache Kafka's, or an operator."""


class BatchMemo(NamedTuple):
    """A batch an idempotent producer wrote; `timestamp` is when, in ms."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        """Where the batch begins in the log."""
        return self.last_offset - self.offset_delta


class MarkerMemo(NamedTuple):
    """The marker of a numbered transaction that was written here last, while this broker led the partition.

    It is not in snapshots: a marker that comes late from before a restart comes by a connection that ended
    with the process.
    """

    coordinator_epoch: int
    transaction_number: int
    offset: int


class Producer:
    """One producer id. `next_sequence` is the base sequence its next batch must have.

    `coordinator_epoch` is that of its last marker, `txn_first_offset` where its open transaction began; both
    are -1 if there is none.
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
        """Batches of another epoch begin at sequence 0."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
            self.next_sequence = 0
