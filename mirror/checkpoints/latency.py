"""How long checkpoints take, from the translation of a group's offset to the target's acknowledgement.

MirrorMaker's `checkpoint-latency-ms`, for each group and remote partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kafka_client import TopicPartition
from kafka_client.metrics.windowed import Windowed
from mirror.records.checkpoint import Checkpoint


class CheckpointLatency:
    """The latencies of the checkpoints that this process wrote. Call `record` for those acknowledged.

    `keep_groups` and `keep_partitions` bound what is stored to the groups and offsets that the source has.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, Windowed]] = {}

    def record(self, checkpoints: Iterable[Checkpoint], milliseconds: float) -> None:
        """Record that these checkpoints were acknowledged after `milliseconds`."""
        for each in checkpoints:
            latencies = self._groups.setdefault(each.consumer_group_id, {})
            latencies.setdefault(each.topic_partition, Windowed()).record(milliseconds)

    def keep_groups(self, groups: Collection[str]) -> None:
        """Forget all other groups."""
        for group in self._groups.keys() - set(groups):
            del self._groups[group]

    def keep_partitions(self, group: str, remotes: Collection[TopicPartition]) -> None:
        """Forget the group's other remote partitions, and the group if there is none."""
        latencies = self._groups.get(group, {})
        for remote in latencies.keys() - set(remotes):
            del latencies[remote]
        if not latencies:
            self._groups.pop(group, None)

    def read(self) -> Iterator[tuple[str, TopicPartition, Windowed]]:
        """Yield each group and remote partition with its latencies in ms."""
        for group, latencies in list(self._groups.items()):
            for remote, latency in list(latencies.items()):
                yield group, remote, latency
