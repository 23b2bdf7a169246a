"""Kafka's default partitioning: murmur2 of the key; null keys stick to one partition at a time (KIP-480)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from logd.client.producer.murmur2 import murmur2
from logd.records import NewRecord

KEY_CACHE_SIZE = 65_536
KNOWN_KEYS_MAX = 65_536
LEARNT_AT_ONCE_MIN = 100
"""If so many keys of a list were not known, the next list's are hashed at once, where numpy is loaded."""


@lru_cache(maxsize=KEY_CACHE_SIZE)
def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition Kafka's Java client puts `key` in; remembered for the latest `KEY_CACHE_SIZE` keys."""
    return _partition(key, partition_count)


def _partition(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


Hashes = Callable[[Iterable[bytes]], Iterable[tuple[bytes, int]]]
"""Keys with their `murmur2`."""


def _murmur2_many() -> Hashes | None:
    """Not to be loaded for this alone: that takes a tenth of a second, and memory."""
    if "numpy" not in sys.modules:
        return None
    from logd.client.producer.murmur2_vectors import murmur2_many

    return murmur2_many


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
        self._missed = 0
        """How many keys of the last list were not known."""

    def __missing__(self, key: bytes | None) -> Callable[[NewRecord], None]:
        if len(self) >= KNOWN_KEYS_MAX:
            self.clear()
        self._missed += 1
        if key is None:
            append = self._keyless.append
        else:
            append = self._appends[_partition(key, len(self._buckets))]
        self[key] = append
        return append

    def group(self, records: Sequence[NewRecord], sticky: Callable[[], int]) -> dict[int, list[NewRecord]]:
        """The records by partition, in order; those without a key go to the one of ``sticky()``."""
        missed, self._missed = self._missed, 0
        if missed >= LEARNT_AT_ONCE_MIN and (hashes := _murmur2_many()):
            self._learn({record[1] for record in records}, hashes)
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

    def _learn(self, keys: set[bytes | None], hashes: Hashes) -> None:
        """Find out where those belong that are not known, if they are many, before they are asked for."""
        missing = [key for key in keys.difference(self) if key is not None]
        if len(missing) < LEARNT_AT_ONCE_MIN:
            return
        if len(self) + len(missing) > KNOWN_KEYS_MAX:
            self.clear()
        for key, hash in hashes(missing[:KNOWN_KEYS_MAX]):
            self[key] = self._appends[(hash & 0x7FFFFFFF) % len(self._buckets)]
        self._missed = len(missing)  # so that the next list is looked at as well

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
