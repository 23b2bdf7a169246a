"""What a log knows of its idempotent producers, to tell duplicates, gaps and zombies apart (KIP-98, KIP-360).

A producer numbers its records; the next batch must begin where its last one ended. The last five batches of
each are remembered, since five may be in flight: one of them sent again is a duplicate and is answered with
the offsets of the first time. A producer nobody remembers (new, expired, or its records deleted) may begin
with any number.

Snapshots, in Kafka's format (version 1, big-endian):

    offset  bytes  field
         0      2  version = 1
         2      4  CRC-32C of bytes 6…
         6      4  number of entries, then each:
                   int64 producer id · int16 epoch · int32 last sequence · int64 last offset · int32 offset
                   delta int64 timestamp · int32 coordinator epoch · int64 first offset of the open
                   transaction, -1 none

Left to others: allotting producer ids (the broker), when snapshots are taken (`snapshots`, `log`),
transactions.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import NamedTuple

import crc32c

from logd.errors import ErrorCode, KafkaError, error_for
from logd.records.header import NO_SEQUENCE, BatchHeader

REMEMBERED_BATCHES = 5
SEQUENCE_MASK = 0x7FFF_FFFF
SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_ENTRIES_START = 6


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


class Producer:
    """One producer id. `next_sequence` is the base sequence its next batch must have."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "next_sequence", "timestamp", "txn_first_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next_sequence = 0
        self.batches: deque[BatchMemo] = deque(maxlen=REMEMBERED_BATCHES)
        self.timestamp = -1
        self.coordinator_epoch = -1
        self.txn_first_offset = -1


class ProducerState:
    """The producers of one log, by producer id."""

    __slots__ = ("producers",)

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}

    def check(self, header: BatchHeader) -> BatchMemo | None:
        """Whether a batch may be written now: None if so, or what is remembered of it if it is a duplicate.

        Raises KafkaError: INVALID_PRODUCER_EPOCH for an older instance of the producer,
        OUT_OF_ORDER_SEQUENCE_NUMBER for a gap or for a duplicate too old to be remembered.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return None
        sequence = header.base_sequence
        if header.producer_epoch == producer.epoch:
            if sequence == producer.next_sequence:
                return None
            last = header.last_sequence
            for memo in producer.batches:
                if memo.first_sequence == sequence and memo.last_sequence == last:
                    return memo
        elif header.producer_epoch < producer.epoch:
            raise error_for(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} is at epoch {producer.epoch}, not {header.producer_epoch}",
            )
        elif sequence == 0:
            return None
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} epoch {header.producer_epoch}: sequence {sequence} came, "
            f"{producer.next_sequence if header.producer_epoch == producer.epoch else 0} was due",
        )

    def record(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Remember a batch that was written at `base_offset`, at `timestamp` (the wall clock, ms).

        Not the record's timestamp as Kafka has it: records about the past would make their producer expire at
        once.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
        elif header.producer_epoch != producer.epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        delta = header.last_offset_delta
        last = (header.base_sequence + delta) & SEQUENCE_MASK
        producer.batches.append(BatchMemo(header.base_sequence, last, base_offset + delta, delta, timestamp))
        producer.next_sequence = (last + 1) & SEQUENCE_MASK
        producer.timestamp = timestamp

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers without an open transaction not heard of for `expiration_ms`; how many."""
        expired = [
            producer_id
            for producer_id, producer in self.producers.items()
            if now_ms - producer.timestamp >= expiration_ms and producer.txn_first_offset < 0
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return len(expired)

    def encode(self) -> bytes:
        """A snapshot: of each producer's batches it holds the last."""
        rows = bytearray()
        for producer_id, producer in self.producers.items():
            last = producer.batches[-1] if producer.batches else None
            rows += _SNAPSHOT_ENTRY.pack(
                producer_id,
                producer.epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else -1,
                last.offset_delta if last else 0,
                producer.timestamp,
                producer.coordinator_epoch,
                producer.txn_first_offset,
            )
        count = struct.pack(">i", len(self.producers))
        crc = crc32c.crc32c(rows, crc32c.crc32c(count))
        return _SNAPSHOT_HEAD.pack(SNAPSHOT_VERSION, crc, len(self.producers)) + rows

    @classmethod
    def decode(cls, data: bytes) -> ProducerState:
        """The state in a snapshot; ValueError if it is torn or of another version."""
        size = _SNAPSHOT_HEAD.size
        if len(data) < size:
            raise ValueError(f"{len(data)} bytes are no producer snapshot")
        version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
        if version != SNAPSHOT_VERSION:
            raise ValueError(f"producer snapshot of version {version}")
        if len(data) != size + count * _SNAPSHOT_ENTRY.size or crc32c.crc32c(data[_ENTRIES_START:]) != crc:
            raise ValueError("producer snapshot is damaged")
        state = cls()
        for row in _SNAPSHOT_ENTRY.iter_unpack(data[size:]):
            producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, txn_first = (
                row
            )
            producer = state.producers[producer_id] = Producer(epoch)
            producer.timestamp = timestamp
            producer.coordinator_epoch = coordinator_epoch
            producer.txn_first_offset = txn_first
            if last_offset >= 0:
                first = (last_sequence - delta) & SEQUENCE_MASK
                producer.batches.append(BatchMemo(first, last_sequence, last_offset, delta, timestamp))
                producer.next_sequence = (last_sequence + 1) & SEQUENCE_MASK
        return state
