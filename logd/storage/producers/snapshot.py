"""The producers of a log as bytes, in Kafka's format (version 1, big-endian).

    offset  bytes  field
         0      2  version = 1
         2      4  CRC-32C of bytes 6…
         6      4  number of entries, then each:
                   int64 producer id · int16 epoch · int32 last sequence · int64 last offset · int32 offset
                   delta · int64 timestamp · int32 coordinator epoch · int64 first offset of the open
                   transaction, -1 none

Of each producer's batches only the last is kept. Ended transactions are not: whoever reads a snapshot reads
on from its offset, and comes by the markers again.
"""

from __future__ import annotations

import struct

import crc32c

from logd.records.header import NO_SEQUENCE
from logd.storage.producers.state import SEQUENCE_MASK, BatchMemo, Producer, ProducerState

SNAPSHOT_VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_ENTRIES_START = 6


def encode_snapshot(state: ProducerState) -> bytes:
    """The snapshot file's content."""
    rows = bytearray()
    for producer_id, producer in state.producers.items():
        last = producer.batches[-1] if producer.batches else None
        rows += _ENTRY.pack(
            producer_id,
            producer.epoch,
            last.last_sequence if last else NO_SEQUENCE,
            last.last_offset if last else -1,
            last.offset_delta if last else 0,
            producer.timestamp,
            producer.coordinator_epoch,
            producer.txn_first_offset,
        )
    count = struct.pack(">i", len(state.producers))
    crc = crc32c.crc32c(rows, crc32c.crc32c(count))
    return _HEAD.pack(SNAPSHOT_VERSION, crc, len(state.producers)) + rows


def decode_snapshot(data: bytes) -> ProducerState:
    """The state in a snapshot; ValueError if it is torn or of another version."""
    size = _HEAD.size
    if len(data) < size:
        raise ValueError(f"{len(data)} bytes are no producer snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise ValueError(f"producer snapshot of version {version}")
    if len(data) != size + count * _ENTRY.size or crc32c.crc32c(data[_ENTRIES_START:]) != crc:
        raise ValueError("producer snapshot is damaged")
    return ProducerState({row[0]: _producer(*row[1:]) for row in _ENTRY.iter_unpack(data[size:])})


def _producer(
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> Producer:
    producer = Producer(epoch)
    producer.timestamp = timestamp
    producer.coordinator_epoch = coordinator_epoch
    producer.txn_first_offset = txn_first_offset
    if last_offset >= 0:
        first = (last_sequence - offset_delta) & SEQUENCE_MASK if last_sequence >= 0 else NO_SEQUENCE
        producer.batches.append(BatchMemo(first, last_sequence, last_offset, offset_delta, timestamp))
        producer.next_sequence = (last_sequence + 1) & SEQUENCE_MASK
    return producer
