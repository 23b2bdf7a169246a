"""The snapshot of a log's producers in Kafka's format (version 1, big-endian), with an addition at its end.

    offset  bytes  field
         0      2  version = 1
         2      4  CRC-32C of bytes 6…
         6      4  number of entries
        10    46…  the entries (`row`)
                4  "MSB1", where there is more, which Apache Kafka does not read:
                8  a producer id          ┐
                1  how many batches       │ for each producer of which more than the last batch
              28…  its earlier batches    ┘ is remembered (`row`)

Ended transactions are not included: a reader of a snapshot continues at its offset, and reads the markers
again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from kafka_client.records.crc import crc32c
from kafka_client.records.header import NO_SEQUENCE
from logd.storage.producers.producer import REMEMBERED_BATCHES, SEQUENCE_MASK, BatchMemo, Producer
from logd.storage.producers.row import MEMO, ROW, unpack_memos
from logd.storage.producers.state import ProducerState

SNAPSHOT_VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRIES_START = 6
MORE = b"MSB1"
"""The mark after Kafka's entries, in this version."""
_MORE_HEAD = struct.Struct(">qB")
_ID_BYTES = 8


def encode_snapshot(rows: Sequence[bytes]) -> bytes:
    """Return the snapshot file's content, from `ProducerState.rows`."""
    size = ROW.size
    entries = b"".join([row[:size] for row in rows])
    more = b"".join(
        [
            row[:_ID_BYTES] + bytes((len(row[size:]) // MEMO.size,)) + row[size:]
            for row in rows
            if len(row) > size
        ]
    )
    if more:
        entries += MORE + more
    count = struct.pack(">i", len(rows))
    crc = crc32c(entries, crc32c(count))
    return _HEAD.pack(SNAPSHOT_VERSION, crc, len(rows)) + entries


def decode_snapshot(data: bytes) -> ProducerState:
    """Return the state in a snapshot; raises ValueError if it is damaged or of another version."""
    size = _HEAD.size
    if len(data) < size:
        raise ValueError(f"{len(data)} bytes are no producer snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise ValueError(f"producer snapshot of version {version}")
    end = size + count * ROW.size
    if count < 0 or len(data) < end or crc32c(data[_ENTRIES_START:]) != crc:
        raise ValueError("producer snapshot is damaged")
    producers = {row[0]: _producer(*row[1:]) for row in ROW.iter_unpack(data[size:end])}
    earlier = dict(_earlier(data, end))
    for producer_id, memos in earlier.items():
        if (producer := producers.get(producer_id)) is not None:
            producer.batches.extendleft(reversed(unpack_memos(memos)))
    if len(producers) != count:
        return ProducerState(producers)
    rows = {
        producer_id: data[start : start + ROW.size] + earlier.get(producer_id, b"")
        for producer_id, start in zip(producers, range(size, end, ROW.size), strict=True)
    }
    return ProducerState(producers, rows)


def _earlier(data: bytes, pos: int) -> Iterator[tuple[int, bytes]]:
    """Yield each producer's batches before its last, packed; raises ValueError for another format."""
    if pos == len(data):
        return
    if data[pos : pos + len(MORE)] != MORE:
        raise ValueError(f"producer snapshot with {len(data) - pos} bytes nobody knows behind its entries")
    pos += len(MORE)
    while pos < len(data):
        if pos + _MORE_HEAD.size > len(data):
            raise ValueError("producer snapshot is cut off")
        producer_id, count = _MORE_HEAD.unpack_from(data, pos)
        pos += _MORE_HEAD.size
        end = pos + count * MEMO.size
        if not 0 < count < REMEMBERED_BATCHES or end > len(data):
            raise ValueError(
                f"producer snapshot with {count} batches of producer {producer_id} at byte {pos}"
            )
        yield producer_id, data[pos:end]
        pos = end


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
