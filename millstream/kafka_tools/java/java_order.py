"""The order in which Java goes through a HashMap: scripts have come to see its lines so.

What prints the entries of a HashMap or HashSet prints them by their buckets: by the hash of the key, in a
table that is as large as the number of entries has made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kafka_client.topic_partition import TopicPartition

T = TypeVar("T")

MASK = 0xFFFFFFFF
CAPACITY = 16
"""Of a table that nobody said more of."""


def string_hash(text: str) -> int:
    """String.hashCode, without its sign."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & MASK
    return value


def integer_hash(number: int) -> int:
    """Integer.hashCode, without its sign."""
    return number & MASK


def partition_hash(tp: TopicPartition) -> int:
    """TopicPartition.hashCode, without its sign."""
    return (31 * (31 + tp.partition) + string_hash(tp.topic)) & MASK


def hash_order(keys: Iterable[T], hash_of: Callable[[T], int], capacity: int = CAPACITY) -> list[T]:
    """Keys in the order of a HashMap they were put into one after the other.

    `capacity`: what the map was made with. Buckets that Java makes trees of are not looked at.
    """
    listed = list(dict.fromkeys(keys))
    size = 1
    while size < capacity:
        size *= 2
    while len(listed) > 0.75 * size:
        size *= 2

    def bucket(key: T) -> int:
        value = hash_of(key)
        return (value ^ (value >> 16)) & (size - 1)

    return sorted(listed, key=bucket)


def copied(count: int) -> int:
    """What a HashMap is made with that is the copy of another one with so many entries."""
    return int(count / 0.75 + 1)


def string_order(keys: Iterable[str], capacity: int = CAPACITY) -> list[str]:
    """Strings in the order of a HashMap."""
    return hash_order(keys, string_hash, capacity)


def integer_order(keys: Iterable[int], capacity: int = CAPACITY) -> list[int]:
    """Integers in the order of a HashMap."""
    return hash_order(keys, integer_hash, capacity)


def partition_order(keys: Iterable[TopicPartition], capacity: int = CAPACITY) -> list[TopicPartition]:
    """Partitions in the order of a HashMap."""
    return hash_order(keys, partition_hash, capacity)
