"""Kafka's hash of keys, and the split of records by it.

This module is compiled by Cython. It also runs as plain Python, only slower.

Source: Kafka's Utils.murmur2 and BuiltInPartitioner.partitionForKey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

try:
    from kafka_client import without_cython as cython
except ModuleNotFoundError:
    import cython  # type: ignore[no-redef]  # never run: it tells Cython that the name is its own

if TYPE_CHECKING:
    from kafka_client.records.record import NewRecord

SEED = cython.declare(cython.uint, 0x9747B28C)
M = cython.declare(cython.uint, 0x5BD1E995)
WORD = cython.declare(cython.uint, 0xFFFF_FFFF)
POSITIVE = cython.declare(cython.uint, 0x7FFF_FFFF)


def murmur2(data: bytes) -> int:
    """Return Kafka's 32-bit murmur2 of `data`, as an unsigned number."""
    return _murmur2(data)


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition that Kafka's clients put `key` in."""
    return (_murmur2(key) & POSITIVE) % partition_count


def split_by_partition(
    records: Iterable[NewRecord], partition_count: int, sticky: Callable[[], int]
) -> dict[int, list[NewRecord]]:
    """Return the records by partition, each list in their order.

    `sticky` gives the partition of records without a key; it is called once, if there are any.
    """
    count: cython.uint = partition_count
    place: cython.Py_ssize_t
    keyless: cython.Py_ssize_t = -1
    lists: list[Any] = [None] * count
    for record in records:
        key = record[1]
        if key is not None:
            place = (_murmur2(key) & POSITIVE) % count
        elif keyless >= 0:
            place = keyless
        else:
            place = keyless = sticky()
            if not 0 <= place < count:
                raise IndexError(f"partition {place} of {partition_count}")
        of_partition = lists[place]
        if of_partition is None:
            of_partition = lists[place] = []
        of_partition.append(record)
    return {n: of_partition for n, of_partition in enumerate(lists) if of_partition is not None}


@cython.cfunc
def _murmur2(data: bytes) -> cython.uint:
    """Hash four bytes at a time, little-endian. The masks are for plain Python, whose numbers do not wrap."""
    size: cython.Py_ssize_t = len(data)
    bytes_of: cython.p_const_uchar = data
    hash: cython.uint = SEED ^ cython.cast(cython.uint, size)
    word: cython.uint
    pos: cython.Py_ssize_t = 0
    while size - pos >= 4:
        word = bytes_of[pos] | bytes_of[pos + 1] << 8 | bytes_of[pos + 2] << 16
        word |= cython.cast(cython.uint, bytes_of[pos + 3]) << 24
        word = word * M & WORD
        word = (word ^ word >> 24) * M & WORD
        hash = hash * M & WORD ^ word
        pos += 4
    if size > pos:
        word = bytes_of[pos]
        if size - pos > 1:
            word |= bytes_of[pos + 1] << 8
        if size - pos > 2:
            word |= bytes_of[pos + 2] << 16
        hash = (hash ^ word) * M & WORD
    hash = (hash ^ hash >> 13) * M & WORD
    return hash ^ hash >> 15
