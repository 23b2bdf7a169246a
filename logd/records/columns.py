"""A batch's records by column: at once with numpy, where it is installed and the batch is large enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from logd.records.compression import DECOMPRESSED_LIMIT
from logd.records.decode import Columns, decode_body, read_body
from logd.records.header import BatchHeader, Buffer, read_header

VECTORS_MIN = 150
"""Records from which on numpy is faster; below, its calls cost more than they save."""


def decode_columns(buffer: Buffer, pos: int = 0, *, limit: int = DECOMPRESSED_LIMIT) -> Columns:
    """The records of the batch at `pos` as columns; see `decode_records`."""
    header = read_header(buffer, pos)
    return decode_body_columns(read_body(buffer, pos, header, limit), header)


def decode_body_columns(body: bytes, header: BatchHeader) -> Columns:
    """The records of a batch whose decompressed body is there already (`read_body`); see `decode_records`."""
    if header.count >= VECTORS_MIN and (read := _vectors()) and (found := read(body, header)):
        return found
    return Columns.of(decode_body(body, header))


@cache
def _vectors() -> Callable[[bytes, BatchHeader], Columns | None] | None:
    try:
        from logd.records.vectors import read_columns
    except ImportError:
        return None
    return read_columns
