"""Kafka's default partitioning: murmur2 of the key; null keys stick to one partition at a time (KIP-480)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

from logd.records import NewRecord

KEY_CACHE_SIZE = 65_536
KNOWN_KEYS_MAX = 65_536

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 of `data`, as an unsigned number."""
    length = len(data)
    h = _SEED ^ length
    words = length >> 2
    for k in struct.unpack_from(f"<{words}I", data):
        k = k * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    rest = data[words << 2 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


@lru_cache(maxsize=KEY_CACHE_SIZE)
def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition Kafka's Java client puts `key` in; remembered for the latest `KEY_CACHE_SIZE` keys."""
    return _partition(key, partition_count)


def _partition(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class KeyPartitions(dict[bytes | None, Callable[[NewRecord], None]]):
    """Keys with what takes the records of their partitions; a lookup finds out what is missing.

    For lists of records: of a key that is there already a record costs no more than that call. When
    `KNOWN_KEYS_MAX` keys are there, all of them are forgotten.
    """

    def __init__(self, partition_count: int) -> None:
        super().__init__()
        self._buckets: list[list[NewRecord]] = [[] for _ in range(partition_count)]
        self._keyless: list[NewRecord] = []
        self._appends = [bucket.append for bucket in self._buckets]

    def __missing__(self, key: bytes | None) -> Callable[[NewRecord], None]:
        if len(self) >= KNOWN_KEYS_MAX:
            self.clear()
        if key is None:
            append = self._keyless.append
        else:
            append = self._appends[_partition(key, len(self._buckets))]
        self[key] = append
        return append

    def group(self, records: Sequence[NewRecord], sticky: Callable[[], int]) -> dict[int, list[NewRecord]]:
        """The records by partition, in order; those without a key go to the one of ``sticky()``."""
        try:
            for record in records:
                self[record[1]](record)
            groups = {partition: bucket[:] for partition, bucket in enumerate(self._buckets) if bucket}
            if self._keyless:
                partition = sticky()
                groups[partition] = self._with_keyless(records, partition)
            return groups
        finally:
            for bucket in (self._keyless, *self._buckets):
                bucket.clear()

    def _with_keyless(self, records: Sequence[NewRecord], partition: int) -> list[NewRecord]:
        """Those without a key and those of the partition, in order."""
        if not self._buckets[partition]:
            return self._keyless[:]
        appends = (self[None], self._appends[partition])
        return [record for record in records if self[record[1]] in appends]


class StickyPartitioner:
    """For records without a key: one partition until a batch of it is full, then another (KIP-480).

    `random` gives floats in [0, 1).
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._current: dict[str, int] = {}
        self._previous: dict[str, int] = {}

    def partition(self, topic: str, partition_count: int) -> int:
        """The partition keyless records of `topic` go to now."""
        current = self._current.get(topic, partition_count)
        if current >= partition_count:
            current = self._current[topic] = self._choose(self._previous.get(topic, -1), partition_count)
        return current

    def batch_full(self, topic: str, partition: int) -> None:
        """A batch of the partition is full: if keyless records went there, the next go elsewhere."""
        if self._current.get(topic) == partition:
            self._previous[topic] = self._current.pop(topic)

    def _choose(self, but: int, partition_count: int) -> int:
        """Any partition but one, if there is another."""
        if partition_count == 1 or not 0 <= but < partition_count:
            return int(self._random() * partition_count)
        chosen = int(self._random() * (partition_count - 1))
        return chosen + (chosen >= but)
