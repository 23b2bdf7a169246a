"""Splits the partitions and the groups of a flow over tasks, as MirrorMaker 2's connectors do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka_client import TopicPartition

ASSIGNED_PARTITIONS = "task.assigned.partitions"
ASSIGNED_GROUPS = "task.assigned.groups"


def partitions_by_task(partitions: Sequence[TopicPartition], max_tasks: int) -> list[list[TopicPartition]]:
    """Return the partitions of each task, in turn, so that one topic's partitions are spread over the tasks.

    No task is without partitions. Source: MirrorSourceConnector.taskConfigs.
    """
    count = min(max_tasks, len(partitions))
    return [list(partitions[task::count]) for task in range(count)]


def groups_by_task(groups: Sequence[str], max_tasks: int) -> list[list[str]]:
    """Return the groups of each task, consecutive ones; the first tasks have one more than the last.

    Source: MirrorCheckpointConnector.taskConfigs, ConnectorUtils.groupPartitions.
    """
    count = min(max_tasks, len(groups))
    shares, start = [], 0
    for task in range(count):
        size = len(groups) // count + (task < len(groups) % count)
        shares.append(list(groups[start : start + size]))
        start += size
    return shares


def partitions_text(partitions: Iterable[TopicPartition]) -> str:
    """Return the partitions as a task's config has them: `flights-0,flights-2`."""
    return ",".join(f"{tp.topic}-{tp.partition}" for tp in partitions)


def parse_partitions(text: str) -> list[TopicPartition]:
    """Return the partitions in a task's config. Raises ValueError for a partition without a number."""
    pairs = (name.rpartition("-") for name in text.split(",") if name)
    return [TopicPartition(topic, int(number)) for topic, _, number in pairs]
