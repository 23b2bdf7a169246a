"""Prepares one batch for the target: sends it unchanged, still compressed, or builds it again.

The CRC covers neither base offset nor leader epoch, so both may change. It covers the producer's id, epoch
and sequence, the transactional bit and the timestamp type. `kafka_client.records.restamp` sets those and the
CRC when the batch is sent.

The records are decoded and built into a new batch, with the same codec, if
- the batch has gaps (compaction): brokers refuse such a batch from a client;
- its records have log append time: the remote topic has create time, and readers are to see the same values;
- the copy starts within the batch, so that its first records are not sent.
Source: Kafka's LogValidator, KIP-98; mirror.md, pass-through.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_client.records import BatchHeader, build_batch, check_crc, decode_records


class Passed(NamedTuple):
    """A batch to send. `first_offset` and `next_offset` are offsets of the source."""

    batch: bytes | memoryview
    records: int
    first_offset: int
    next_offset: int


def pass_on(header: BatchHeader, batch: memoryview, position: int) -> Passed | None:
    """Return the batch to send for the records of `batch` from offset `position` on, or None if there are
    none.

    Raises CorruptRecordBatch if the CRC is wrong: a new CRC would make the corrupt batch valid.
    """
    check_crc(batch, 0, header)
    header.codec  # noqa: B018 - raises for an unknown codec, which the target would refuse at every attempt
    if is_passable(header, position):
        return Passed(batch, header.count, header.base_offset, header.next_offset)
    records = [record for record in decode_records(batch) if record[0] >= position]
    if not records:
        return None
    rebuilt = build_batch([record[1:] for record in records], codec=header.codec)
    return Passed(rebuilt, len(records), records[0][0], header.next_offset)


def is_passable(header: BatchHeader, position: int) -> bool:
    """Return True if the batch can be sent without decoding its records."""
    return (
        header.count == header.last_offset_delta + 1
        and header.timestamp_type == 0
        and header.base_offset >= position
    )


def record_count(header: BatchHeader, batch: memoryview, position: int) -> int:
    """Return how many records `pass_on` would send.

    The records are decoded only if `position` is in the batch.
    """
    if header.base_offset >= position:
        return header.count
    return sum(record[0] >= position for record in decode_records(batch))


def have_equal_ends(source: memoryview, target: memoryview, position: int) -> bool:
    """Return True if both batches end with the same records, as many as the shorter of them has.

    Records of the source before `position` do not count. Offsets are not compared.
    """
    expected = [record[1:] for record in decode_records(source) if record[0] >= position]
    stored = [record[1:] for record in decode_records(target)]
    common = min(len(expected), len(stored))
    return common > 0 and expected[-common:] == stored[-common:]
