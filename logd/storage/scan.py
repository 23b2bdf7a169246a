"""Iteration over the batches of a log file: their headers only, or whole batches.

The file is read in chunks. So many small batches take one call, and a large batch's records are skipped.
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
"""The base offset, batch length, magic and last offset delta of a header."""


def find_batch(file: File, position: int, end: int, offset: int) -> tuple[int, int] | None:
    """Return (position, size) of the first batch in bytes [position, end) that is not entirely before
    `offset`.

    It does what `scan_headers` does without creating headers, since every fetch that is not at the log's end
    comes here. A batch with an invalid header but a valid length counts up to the next batch: its reader
    reports the error. Raises CorruptRecordBatch for an invalid length.
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
    """Return the end of the run of batches without records that starts at `position`; `end` if it goes up to
    there.

    After `bytes_max` it stops checking: the batch at the returned position may be without records too. Such
    batches are identical headers, so their lengths are compared column by column.
    """
    stop = end if bytes_max is None else min(end, position + bytes_max)
    while stop - position >= HEADER_SIZE:
        chunk = file.read(position, min(EMPTY_CHUNK, end - position))
        count = len(chunk) // HEADER_SIZE
        if not count:
            break  # the file is shorter than it should be: the next read reports it
        lengths = [chunk[at : count * HEADER_SIZE : HEADER_SIZE] for at in range(8, 12)]
        empty = min(
            count - len(column.lstrip(bytes([expected])))
            for column, expected in zip(lengths, EMPTY_LENGTH, strict=True)
        )
        position += empty * HEADER_SIZE
        if empty < count:
            break
    return position


def scan_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of the whole batches in bytes [position, end); a batch must start at
    `position`.

    Raises CorruptRecordBatch for an invalid header. A partial batch at the end ends the iteration.
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
    """Yield (position, header, bytes) of every whole batch in bytes [position, end), without checking CRCs.

    Raises CorruptRecordBatch for an invalid header. A partial batch at the end ends the iteration.
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
