"""Assigns a batch its place in the log: base offset, leader epoch and, on LogAppendTime topics, the time.

Base offset and leader epoch are in the first 16 bytes of a batch, outside its CRC; the rest is written
unchanged. Log append time changes attributes and max timestamp, so the CRC is computed again. Readers then
use the max timestamp for every record, and compressed records stay unchanged.
"""

from __future__ import annotations

import struct

from kafka_client.records.header import BatchHeader, assign_append_time
from logd.storage.disk import Buffer

PLACE = struct.Struct(">qii")
"""Base offset, batch length and leader epoch: the rewritten start of every batch."""
_PLACE_SIZE = PLACE.size


def place(batch: memoryview, header: BatchHeader, base_offset: int, leader_epoch: int) -> tuple[Buffer, ...]:
    """Return the buffers to write for `batch` at `base_offset`; its records are not copied."""
    return PLACE.pack(base_offset, header.batch_length, leader_epoch), batch[_PLACE_SIZE:]


def place_at_time(
    batch: memoryview, header: BatchHeader, base_offset: int, leader_epoch: int, append_time: int
) -> tuple[Buffer, ...]:
    """Return the buffers to write for `batch` at `base_offset`, with `append_time` (ms) for all its
    records.
    """
    stamped = bytearray(batch)
    assign_append_time(stamped, append_time)
    PLACE.pack_into(stamped, 0, base_offset, header.batch_length, leader_epoch)
    return (stamped,)
