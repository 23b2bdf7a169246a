"""Latencies of checkpoints are kept for groups and offsets that exist."""

from __future__ import annotations

from kafka_client import TopicPartition
from mirror.checkpoints.latency import CheckpointLatency
from mirror.records.checkpoint import Checkpoint

T0, T1 = TopicPartition("dc1.t", 0), TopicPartition("dc1.t", 1)


def test_deleted_groups_and_offsets_are_forgotten() -> None:
    """A mirror that runs for months sees many groups come and go."""
    latency = CheckpointLatency()

    def stored() -> list[tuple[str, TopicPartition]]:
        return [(group, tp) for group, tp, _ in latency.read()]

    for number in range(3):
        latency.record([Checkpoint(f"g{number}", tp, 5, 5, "") for tp in (T0, T1)], 3.0)
    latency.keep_groups({"g0", "g1", "new"})
    assert stored() == [("g0", T0), ("g0", T1), ("g1", T0), ("g1", T1)]
    latency.keep_partitions("g0", [T1])
    latency.keep_partitions("new", [T0])
    assert stored() == [("g0", T1), ("g1", T0), ("g1", T1)]
    latency.keep_partitions("g1", [])
    assert stored() == [("g0", T1)]
    ((_, _, values),) = latency.read()
    assert values.last == 3.0
