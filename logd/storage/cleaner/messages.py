"""The messages between the broker and its cleaner process: frames of msgpack, each after its length.

broker → cleaner:  Task, Cancel        cleaner → broker:  Cleaned*, then Done or Failed

frame:  length u32, big-endian │ msgpack
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

LENGTH = struct.Struct(">I")
EVERYTHING = (1 << 63) - 1
"""An offset above every log end."""
RECORD_BYTES_MAX = (1 << 31) - 1
"""An upper bound of every record's length, in bytes."""

AbortedEntry: TypeAlias = tuple[int, int, int, int]
"""A transaction index entry: producer id, first offset, last offset, last stable offset."""


class Source(msgspec.Struct, array_like=True, frozen=True):
    """A segment to clean: its first `size` bytes, whose offsets end before `end_offset`."""

    base_offset: int
    size: int
    end_offset: int


class Task(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """The order to clean one log; `sources` are its segments from the first up to the end of the cleaning.

    Keys are collected from `first_dirty` on. `last_stable_offset` is the log's. `aborted` are the aborted
    transactions with records in `sources`. `producers` are the active ones: id, offset of the last data (-1:
    none), epoch. Deletions and transaction markers at or above `removable_to` stay at any age.
    `record_bytes_max` is the largest record to read from a compressed batch. Sizes are in bytes, times in ms.
    """

    directory: str
    sources: list[Source]
    first_dirty: int
    last_stable_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    aborted: Sequence[AbortedEntry]
    producers: list[tuple[int, int, int]]
    removable_to: int = EVERYTHING
    map_bytes: int = 128 * 1024 * 1024
    map_load_factor: float = 0.9
    buffer_bytes: int = 512 * 1024
    bytes_per_second: float = float("inf")
    record_bytes_max: int = RECORD_BYTES_MAX


class Cancel(msgspec.Struct, tag=True, frozen=True):
    """The order to stop the current task."""


class Cleaned(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """The report that a group of segments, `replaced` by base offset, was rewritten as one of `size` bytes.

    Its files are whole and synced, under the first segment's names with `.cleaned`. Some of the deletions and
    transaction markers before `removal_offset` are removed from this group or earlier ones.
    """

    base_offset: int
    replaced: list[int]
    size: int
    modified_ms: int
    suffixes: list[str]
    removal_offset: int = 0


class Done(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """The report that the log is clean below `first_dirty`, with counts. `bytes_read` counts both passes."""

    first_dirty: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    keys: int
    seconds: float


class Failed(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """The report that the task ended early.

    `reason`: the log is corrupt, its files are gone (the log was deleted), the disk is full, the disk failed,
    or the task was cancelled.
    """

    reason: Literal["corrupt", "gone", "full", "disk", "cancelled"]
    message: str


Order: TypeAlias = Task | Cancel
Report: TypeAlias = Cleaned | Done | Failed


def frame(message: Order | Report) -> bytes:
    """Return a message as a frame."""
    data = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(data)) + data
