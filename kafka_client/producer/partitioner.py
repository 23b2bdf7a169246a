"""The partition of records without a key (KIP-480). `records.partitioning` places keyed records."""

from __future__ import annotations

from collections.abc import Callable


class StickyPartitioner:
    """A partitioner of records without a key: one partition until a batch is full, then another (KIP-480).

    `random` returns floats in [0, 1).
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._current: dict[str, int] = {}
        self._previous: dict[str, int] = {}

    def partition(self, topic: str, partition_count: int) -> int:
        """Return the partition for the next keyless records of `topic`."""
        current = self._current.get(topic, partition_count)
        if current >= partition_count:
            current = self._current[topic] = self._choose(self._previous.get(topic, -1), partition_count)
        return current

    def batch_full(self, topic: str, partition: int) -> None:
        """Choose another partition for keyless records if they went to this one, whose batch is full."""
        if self._current.get(topic) == partition:
            self._previous[topic] = self._current.pop(topic)

    def _choose(self, but: int, partition_count: int) -> int:
        """Return a random partition other than `but`, if there is another."""
        if partition_count == 1 or not 0 <= but < partition_count:
            return int(self._random() * partition_count)
        chosen = int(self._random() * (partition_count - 1))
        return chosen + (chosen >= but)
