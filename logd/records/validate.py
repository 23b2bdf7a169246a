"""What a broker checks of a batch a client produced, and the error codes it refuses it with.

`check_produced` reads the header, the CRC and the first record (or the first bytes of what is
compressed), so that its time does not grow with the number of records. `check_produced_records`
decodes them, for topics where a broker has to look at each (compacted ones refuse records without a key).
Batches from a leader, as a follower fetches them, are `run`'s.
"""

from __future__ import annotations

from logd.errors import CorruptRecordBatch, ErrorCode, KafkaError, error_for
from logd.records.build import Record
from logd.records.compression import DECOMPRESSED_LIMIT, FRAME_HEADER_SIZE, Codec, check_frame
from logd.records.header import (
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
from logd.records.reader import RecordReader, decode_records

_MAGIC_POSITION = 16


def check_produced(records: Buffer) -> BatchHeader:
    """The header of the one batch that a produce request holds for a partition.

    Raises KafkaError: CORRUPT_MESSAGE where the batch does not hold together, INVALID_RECORD where
    a client may not produce such a batch (several batches, an old format, a control batch, none or
    missing records, a first record that is none, a producer id without epoch and sequence, what its codec did
    not write, lz4 as Java does not read it).
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
    if header.count:
        try:
            if attributes & CODEC_MASK:
                check_frame(attributes & CODEC_MASK, records[HEADER_SIZE : HEADER_SIZE + FRAME_HEADER_SIZE])
            else:
                RecordReader(records, 0, header).check()
        except CorruptRecordBatch as error:
            raise _invalid(str(error)) from None
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise _invalid(
            f"producer id {header.producer_id} with epoch {header.producer_epoch} "
            f"and sequence {header.base_sequence}"
        )
    if attributes & TRANSACTIONAL_BIT and header.producer_id < 0:
        raise _invalid("a transactional batch without a producer id")
    return header


def check_produced_records(batch: Buffer, *, limit: int = DECOMPRESSED_LIMIT) -> list[Record]:
    """The decoded records of a batch that passed `check_produced`.

    Raises KafkaError INVALID_RECORD if they do not decode, or if their offsets are not consecutive.
    """
    try:
        records = decode_records(batch, limit=limit)
    except CorruptRecordBatch as error:
        raise _invalid(str(error)) from None
    base = read_header(batch).base_offset
    for expected, record in enumerate(records, base):
        if record[0] != expected:
            raise _invalid(f"record {expected - base} has offset delta {record[0] - base}")
    return records


def _invalid(message: str) -> KafkaError:
    return error_for(ErrorCode.INVALID_RECORD, message)
