"""Which segments are rewritten together: small ones become one again."""

from __future__ import annotations

from collections.abc import Sequence

from logd.storage.cleaner.messages import Source
from logd.storage.index.offset import OffsetIndex
from logd.storage.index.time import TimeIndex

GROUP_SEGMENTS_MAX = 32
"""Segments in a group: the owner renames their files in one go. Many small ones merge over several rounds."""
RELATIVE_OFFSET_MAX = 2**31 - 1


def groups(
    sources: Sequence[Source], *, segment_bytes: int, segment_index_bytes: int, index_interval_bytes: int
) -> list[list[Source]]:
    """Neighbours whose sizes together are within a segment's limits, as they are before cleaning.

    A segment above the limits is a group of its own.
    """
    entry_bytes = max(OffsetIndex.ENTRY_SIZE, TimeIndex.ENTRY_SIZE)
    # An entry comes after more than an interval of log.
    bytes_max = min(segment_bytes, segment_index_bytes // entry_bytes * (index_interval_bytes + 1))
    found: list[list[Source]] = []
    room = 0
    for source in sources:
        fits = (
            found
            and len(found[-1]) < GROUP_SEGMENTS_MAX
            and source.size <= room
            and source.end_offset - 1 - found[-1][0].base_offset <= RELATIVE_OFFSET_MAX
        )
        if fits:
            found[-1].append(source)
        else:
            found.append([source])
            room = bytes_max
        room -= source.size
    return found
