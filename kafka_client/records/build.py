"""Whole batches: built of new records or of decoded ones, and given another producer.

`writer` encodes the records. The batch header is drawn in `header`, a record in `reader`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_client.records.compression import Codec, compress
from kafka_client.records.crc import crc32c
from kafka_client.records.header import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
)
from kafka_client.records.record import NewRecord, Record
from kafka_client.records.writer import encode_kept, encode_records


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Return one batch of `records`, which must not be empty, with offsets from `base_offset` on."""
    if not records:
        raise ValueError("a batch needs a record")
    base_timestamp = records[0][0]
    body = compress(codec, encode_records(records, base_timestamp), level)
    count = len(records)
    return seal(
        BatchHeader(
            base_offset,
            HEADER_SIZE - LOG_OVERHEAD + len(body),
            leader_epoch,
            MAGIC,
            0,
            codec | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0),
            count - 1,
            base_timestamp,
            max([record[0] for record in records]),
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ),
        body,
    )


def rebuild_batch(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    codec: Codec | None = None,
    level: int | None = None,
) -> bytes:
    """Return the batch of `header` with only `records` of its own left; offsets and its ends stay.

    It is used for compaction, where no record may be left at all, and for another `codec`. The base timestamp
    stays. The max timestamp follows the records unless it is the log append time.
    """
    codec = header.codec if codec is None else codec
    body: bytes | bytearray = encode_kept(records, header.base_offset, header.base_timestamp)
    if records:
        body = compress(codec, body, level)
    if header.timestamp_type:
        max_timestamp = header.max_timestamp
    else:
        max_timestamp = max((record[1] for record in records), default=NO_TIMESTAMP)
    return seal(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD + len(body),
            attributes=header.attributes & ~CODEC_MASK | (codec if records else 0),
            max_timestamp=max_timestamp,
            count=len(records),
        ),
        body,
    )


def restamp(
    batch: Buffer,
    header: BatchHeader,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
) -> bytes:
    """Return the batch that starts with `header`, as if another producer had built it.

    It is used to forward batches to another cluster: records stay compressed, the CRC is new. The
    transactional, the timestamp-type and the delete-horizon bit are cleared. The delete horizon (KIP-534)
    belongs to the other cluster's cleaner. Its base timestamp stays, since the records' times are relative to
    it (Kafka's MemoryRecordsBuilder), and has no other meaning then. The caller must not pass batches that a
    broker would refuse (control batches, compacted batches: rebuild those). It rebuilds batches of log append
    time if readers are to see that time.
    """
    attributes = header.attributes & ~(TRANSACTIONAL_BIT | APPEND_TIME_BIT | DELETE_HORIZON_BIT)
    return seal(
        header._replace(
            base_offset=base_offset,
            partition_leader_epoch=leader_epoch,
            attributes=attributes | (TRANSACTIONAL_BIT if transactional else 0),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        ),
        memoryview(batch)[HEADER_SIZE : header.size],
    )


def seal(header: BatchHeader, body: Buffer) -> bytes:
    """Return header and body as one batch with its CRC. The body is copied once."""
    packed = bytearray(HEADER.pack(*header))
    crc = crc32c(body, crc32c(memoryview(packed)[CRC_START:]))
    packed[17:21] = crc.to_bytes(4, "big")
    return b"".join((packed, body))
