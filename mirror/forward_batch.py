"""One batch from cluster to cluster: passed on as it is, still compressed, or else built anew.

Base offset and leader epoch lie outside of a batch's CRC. A producer's stamp, the transactional bit and the
timestamp type do not, so the producer that sends the batch on stamps it again
(`kafka_client.records.restamp`). The records are decoded, and built into a new batch by the same codec, when
- the batch has gaps (compaction): a broker takes no such batch from a client;
- its records have log append time: the remote topic keeps create time, and its readers are to see the same;
- records in front are not wanted, because the copy starts in the middle of it.
Source: Kafka's LogValidator, KIP-98; mirror.md, pass-through.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_client.records import BatchHeader, build_batch, check_crc, decode_records


class Passed(NamedTuple):
    """A batch as it is sent; `first_offset` and `next_offset` are the source's."""

    batch: bytes | memoryview
    records: int
    first_offset: int
    next_offset: int


def pass_on(header: BatchHeader, batch: memoryview, position: int) -> Passed | None:
    """What to send of a data batch to a copy that wants offsets from `position` on; None: nothing.

    Raises CorruptRecordBatch: a batch that arrived broken is not made valid by a new CRC.
    """
    check_crc(batch, 0, header)
    header.codec  # noqa: B018 - raises: a target that is asked again and again takes no unknown codec
    if is_passable(header, position):
        return Passed(batch, header.count, header.base_offset, header.next_offset)
    records = [record for record in decode_records(batch) if record[0] >= position]
    if not records:
        return None
    rebuilt = build_batch([record[1:] for record in records], codec=header.codec)
    return Passed(rebuilt, len(records), records[0][0], header.next_offset)


def is_passable(header: BatchHeader, position: int) -> bool:
    """Whether the batch goes as it is."""
    return (
        header.count == header.last_offset_delta + 1
        and header.timestamp_type == 0
        and header.base_offset >= position
    )


def record_count(header: BatchHeader, batch: memoryview, position: int) -> int:
    """How many records `pass_on` would send; what can be is read from the header."""
    if header.base_offset >= position:
        return header.count
    return sum(record[0] >= position for record in decode_records(batch))


def end_alike(source: memoryview, target: memoryview, position: int) -> bool:
    """Whether the target's batch ends with what `pass_on` made of the source's, or the other way round: they
    need not begin at the same record.
    """
    wanted = [record[1:] for record in decode_records(source) if record[0] >= position]
    found = [record[1:] for record in decode_records(target)]
    both = min(len(wanted), len(found))
    return both > 0 and wanted[-both:] == found[-both:]
