"""A run of batches as a leader sent them in a Fetch answer: what a follower checks before it writes them.

Headers and CRCs, no records: those the leader has looked at. What stands outside the CRC (base offset, batch
length, leader epoch, magic) is compared with what has to come; only a base offset that is too large cannot be
told from a gap that compaction left.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.control import Marker, parse_marker
from kafka_client.records.crc import crc32c
from kafka_client.records.header import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    Buffer,
    check_crc,
    read_header,
)

OFFSET_MAX = 2**63 - 2
"""The largest a record may have: the offset behind it has to be a number of 64 bits as well."""


class Run(NamedTuple):
    """Whole batches that stand one behind the other, `size` bytes from the first on.

    `epochs` are (leader epoch, base offset) where the leader epoch grows, `of_producers` the places in
    `headers` of the batches that idempotent or transactional producers wrote, with their `markers` by place.
    """

    headers: list[BatchHeader]
    size: int
    epochs: list[tuple[int, int]]
    of_producers: list[int]
    markers: dict[int, Marker]


def check_run(
    batches: Buffer, *, due: int, epoch: int, epoch_max: int, may_begin_before: bool = False
) -> Run:
    """Check the batches that a follower fetched; return the whole ones.

    The log ends at `due` in leader epoch `epoch` (-1: none). A partial batch at the end, where the response
    was cut, is left out, as is one whose length says so. If the log is empty, the first batch
    `may_begin_before` `due`, since the leader's log may start inside a batch.

    Raises CorruptRecordBatch, before anything is allocated by a header's values. Reasons are invalid batches,
    a wrong CRC, falling offsets, and a leader epoch that falls (KIP-101) or is larger than `epoch_max`, the
    leader's. Another is a producer's control batch without a marker.
    """
    view = memoryview(batches)
    headers: list[BatchHeader] = []
    epochs: list[tuple[int, int]] = []
    of_producers: list[int] = []
    markers: dict[int, Marker] = {}
    unpack, make, crc32 = HEADER.unpack_from, BatchHeader._make, crc32c
    pos, end = 0, len(view)
    while end - pos >= HEADER_SIZE:
        header = make(unpack(view, pos))
        base, length, written_in, magic, crc, attributes, delta, _, _, producer_id, _, _, count = header
        if magic != MAGIC or length < HEADER_SIZE - LOG_OVERHEAD or count < 0 or delta < 0:
            read_header(view, pos)  # which says what is wrong
        after = pos + LOG_OVERHEAD + length
        if after > end:
            break
        if crc32(view[pos + CRC_START : after]) != crc:
            check_crc(view, pos, header)
        if (base < due or base + delta > OFFSET_MAX) and not (
            may_begin_before and not headers and 0 <= base <= due <= base + delta <= OFFSET_MAX
        ):
            raise CorruptRecordBatch(f"a batch of offsets {base}…{base + delta} where {due} was due")
        if written_in != epoch:
            if not epoch < written_in <= epoch_max:
                raise CorruptRecordBatch(
                    f"the batch at offset {base} is of leader epoch {written_in}, which has to be in "
                    f"{epoch}…{epoch_max}"
                )
            epoch = written_in
            epochs.append((epoch, base))
        if producer_id >= 0:
            if attributes & CONTROL_BIT and count:  # else compaction has taken the marker
                markers[len(headers)] = _marker(view[pos:after], header)
            of_producers.append(len(headers))
        headers.append(header)
        due = base + delta + 1
        pos = after
    return Run(headers, pos, epochs, of_producers, markers)


def _marker(batch: memoryview, header: BatchHeader) -> Marker:
    if header.attributes & CODEC_MASK:
        raise CorruptRecordBatch(f"the marker at offset {header.base_offset} is compressed")
    return parse_marker(batch)
