"""Walking the batches of a log file: their headers only, or the whole of them.

Reads in chunks, so that many small batches cost one call and a large one's records are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.header import HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader, read_header
from logd.storage.disk import File

HEADER_CHUNK = 16 * 1024
BATCH_CHUNK = 1024 * 1024
EMPTY_CHUNK = 1024 * HEADER_SIZE
EMPTY_LENGTH = (HEADER_SIZE - LOG_OVERHEAD).to_bytes(4, "big")
"""The length field of a batch without records."""


_REACH = struct.Struct(">qi4xb4x2xi")
"""Of a header the base offset, the batch length, the magic and the last offset's delta."""


def find_batch(file: File, position: int, end: int, offset: int) -> tuple[int, int] | None:
    """(position, size) of the first batch in bytes [position, end) that is not wholly before `offset`.

    As `scan_headers`, without making a header of each batch: every fetch that is not at the log's end looks
    here. A batch whose header makes no sense, but for its length, reaches up to the next one: whoever reads
    it says what is wrong with it. Raises CorruptRecordBatch where a length makes no sense.
    """
    chunk, start, size, unpack = b"", position, HEADER_CHUNK, _REACH.unpack_from
    damaged: tuple[int, int] | None = None
    while end - position >= HEADER_SIZE:
        place = position - start
        if place + HEADER_SIZE > len(chunk):
            chunk, start, place = file.read(position, min(size, end - position)), position, 0
            if len(chunk) < HEADER_SIZE:
                raise CorruptRecordBatch(f"file ends at byte {start + len(chunk)} of {end}")
        base_offset, length, magic, delta = unpack(chunk, place)
        length += LOG_OVERHEAD
        if length < HEADER_SIZE or position + length > end:
            raise CorruptRecordBatch(
                f"batch at byte {position} with length {length - LOG_OVERHEAD}, {end - position} bytes left"
            )
        if damaged is not None:
            if base_offset > offset:
                return damaged
            damaged = None
        if magic != MAGIC or delta < 0:
            damaged = position, length
        elif base_offset + delta >= offset:
            return position, length
        size = HEADER_CHUNK if 4 * length < HEADER_CHUNK else HEADER_SIZE
        position += length
    if position < end:
        raise CorruptRecordBatch(f"{end - position} bytes at byte {position} are no batch")
    return damaged


def end_of_empty(file: File, position: int, end: int, bytes_max: int | None = None) -> int:
    """Where the batches without records end that begin at `position`, or `end` if they go on up to there.

    After `bytes_max` it stops looking: the batch it leads to may be one of them as well. Such batches are
    bare headers, one like the other, so their lengths are looked at a column at a time.
    """
    stop = end if bytes_max is None else min(end, position + bytes_max)
    while stop - position >= HEADER_SIZE:
        chunk = file.read(position, min(EMPTY_CHUNK, end - position))
        count = len(chunk) // HEADER_SIZE
        if not count:
            break  # the file is shorter than it should be: who reads on is told
        lengths = [chunk[at : count * HEADER_SIZE : HEADER_SIZE] for at in range(8, 12)]
        empty = min(
            count - len(column.lstrip(bytes([wanted])))
            for column, wanted in zip(lengths, EMPTY_LENGTH, strict=True)
        )
        position += empty * HEADER_SIZE
        if empty < count:
            break
    return position


def scan_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of the whole batches in bytes [position, end); `position` is where one begins.

    Raises CorruptRecordBatch where a header makes no sense; a partial batch at the end ends the walk.
    """
    chunk, start, size = b"", position, HEADER_CHUNK
    while end - position >= HEADER_SIZE:
        if position + HEADER_SIZE > start + len(chunk):
            start = position
            chunk = file.read(start, min(size, end - start))
        header = read_header(chunk, position - start)
        if position + header.size > end:
            return
        size = HEADER_CHUNK if 4 * header.size < HEADER_CHUNK else HEADER_SIZE
        yield position, header
        position += header.size


def scan_batches(
    file: File, position: int, end: int, *, chunk_bytes: int = BATCH_CHUNK
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """(position, header, bytes) of every whole batch in bytes [position, end), CRCs unchecked.

    Raises CorruptRecordBatch where a header makes no sense; a partial batch at the end ends the walk.
    """
    chunk, start = memoryview(b""), position
    while end - position >= HEADER_SIZE:
        if position + HEADER_SIZE > start + len(chunk):
            chunk, start = memoryview(file.read(position, min(chunk_bytes, end - position))), position
        header = read_header(chunk, position - start)
        size = header.size
        if position + size > end:
            return
        if position + size > start + len(chunk):
            chunk, start = (
                memoryview(file.read(position, min(max(size, chunk_bytes), end - position))),
                position,
            )
        if len(chunk) < size:
            raise CorruptRecordBatch(
                f"file ends at byte {start + len(chunk)} of a batch up to {position + size}"
            )
        yield position, header, chunk[position - start : position - start + size]
        position += size
