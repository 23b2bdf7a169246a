"""A broker's checks of a batch that a client produced, and the error codes of refused ones.

`check_produced` reads the header and the CRC. `check_records` visits all records, decompressed in pieces, as
Kafka's LogValidator does. `run` checks batches that a follower fetched from a leader.
"""

from __future__ import annotations

from kafka_client.errors import CorruptRecordBatch, ErrorCode, KafkaError, error_for
from kafka_client.records.compression import (
    DECOMPRESSED_LIMIT,
    FRAME_HEADER_SIZE,
    Codec,
    DecompressedTooLarge,
    check_frame,
)
from kafka_client.records.header import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    check_crc,
    read_header,
)
from kafka_client.records.reader import Checked, RecordReader

_MAGIC_POSITION = 16


def check_produced(records: Buffer) -> BatchHeader:
    """Return the header of the one batch that a produce request holds for a partition.

    Raises KafkaError: CORRUPT_MESSAGE if header, size or CRC are wrong, INVALID_RECORD if a client may not
    produce such a batch: several batches, an old format, a control batch, a count that does not fit the
    offsets, a producer id without epoch and sequence.
    """
    if len(records) < HEADER_SIZE:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, f"{len(records)} bytes are no record batch")
    if records[_MAGIC_POSITION] < MAGIC:
        raise _invalid(f"message format {records[_MAGIC_POSITION]} is no longer supported, only {MAGIC}")
    try:
        header = read_header(records)
        if LOG_OVERHEAD + header.batch_length < len(records):
            raise _invalid(f"more than one batch: {len(records)} bytes, the first has {header.size}")
        check_crc(records, 0, header)
        attributes = header.attributes
        if attributes & CODEC_MASK > Codec.ZSTD:
            header.codec  # noqa: B018 - raises
    except CorruptRecordBatch as error:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if attributes & CONTROL_BIT:
        raise _invalid("clients may not write control batches")
    if header.count != header.last_offset_delta + 1:
        raise _invalid(f"{header.count} records over {header.last_offset_delta + 1} offsets")
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise _invalid(
            f"producer id {header.producer_id} with epoch {header.producer_epoch} "
            f"and sequence {header.base_sequence}"
        )
    if attributes & TRANSACTIONAL_BIT and header.producer_id < 0:
        raise _invalid("a transactional batch without a producer id")
    return header


def check_records(
    batch: Buffer,
    header: BatchHeader,
    *,
    limit: int = DECOMPRESSED_LIMIT,
    record_limit: int = DECOMPRESSED_LIMIT,
) -> Checked:
    """Walk all records of a batch that passed `check_produced`, and return what their header should say.

    `limit` is the most bytes that the records may decompress to, `record_limit` the most bytes of a record in
    a compressed batch. Raises KafkaError INVALID_RECORD if a record is broken, is too large, does not have
    the next offset, or if anything but the records is in the batch. Raises DecompressedTooLarge.
    """
    codec = header.attributes & CODEC_MASK
    try:
        if not codec:
            return RecordReader(batch, 0, header).check()
        if header.count:
            check_frame(codec, batch[HEADER_SIZE : HEADER_SIZE + FRAME_HEADER_SIZE])
        return RecordReader(batch, 0, header, limit=limit, record_limit=record_limit).check()
    except DecompressedTooLarge:
        raise
    except CorruptRecordBatch as error:
        raise _invalid(str(error)) from None


def _invalid(message: str) -> KafkaError:
    return error_for(ErrorCode.INVALID_RECORD, message)
