"""How long checkpoints take, from the translation of a group's offset to the target's acknowledgement.

MirrorMaker's `checkpoint-latency-ms`, for each group and remote partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka_client import TopicPartition
from kafka_client.metrics.windowed import Windowed
from mirror.records.checkpoint import Checkpoint


class CheckpointLatency:
    """The latencies of the checkpoints that this process wrote. Call `record` for those acknowledged."""

    def __init__(self) -> None:
        self._latencies: dict[tuple[str, TopicPartition], Windowed] = {}

    def record(self, checkpoints: Iterable[Checkpoint], milliseconds: float) -> None:
        """Record that these checkpoints were acknowledged after `milliseconds`."""
        for each in checkpoints:
            key = (each.consumer_group_id, each.topic_partition)
            self._latencies.setdefault(key, Windowed()).record(milliseconds)

    def read(self) -> Iterator[tuple[str, TopicPartition, Windowed]]:
        """Yield each group and remote partition with its latencies in ms."""
        for (group, remote), latency in list(self._latencies.items()):
            yield group, remote, latency
