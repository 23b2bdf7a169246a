"""The producers of a log as bytes, in Kafka's format (version 1, big-endian).

    offset  bytes  field
         0      2  version = 1
         2      4  CRC-32C of bytes 6…
         6      4  number of entries
        10    46…  the entries (`row`)

Ended transactions are not kept: whoever reads a snapshot reads on from its offset, and comes by the markers
again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import crc32c

from logd.records.header import NO_SEQUENCE
from logd.storage.producers.producer import SEQUENCE_MASK, BatchMemo, Producer
from logd.storage.producers.row import ROW
from logd.storage.producers.state import ProducerState

SNAPSHOT_VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRIES_START = 6


def encode_snapshot(rows: Sequence[bytes]) -> bytes:
    """The snapshot file's content, from `ProducerState.rows`."""
    entries = b"".join(rows)
    count = struct.pack(">i", len(rows))
    crc = crc32c.crc32c(entries, crc32c.crc32c(count))
    return _HEAD.pack(SNAPSHOT_VERSION, crc, len(rows)) + entries


def decode_snapshot(data: bytes) -> ProducerState:
    """The state in a snapshot; ValueError if it is torn or of another version."""
    size = _HEAD.size
    if len(data) < size:
        raise ValueError(f"{len(data)} bytes are no producer snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise ValueError(f"producer snapshot of version {version}")
    if len(data) != size + count * ROW.size or crc32c.crc32c(data[_ENTRIES_START:]) != crc:
        raise ValueError("producer snapshot is damaged")
    producers = {row[0]: _producer(*row[1:]) for row in ROW.iter_unpack(data[size:])}
    starts = range(size, len(data), ROW.size)
    if len(producers) != count:
        return ProducerState(producers)
    rows = (data[start : start + ROW.size] for start in starts)
    return ProducerState(producers, dict(zip(producers, rows, strict=True)))


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
