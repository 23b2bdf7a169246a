"""Decides which checkpoints of a group are new. Without I/O.

A checkpoint in the target does not go back, except when the group itself went back in the source: syncs that
were used before a restart may be compacted away, and the same position is then translated to a lower offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka_client import OffsetAndMetadata, TopicPartition
from mirror.records.checkpoint import Checkpoint

Checkpoints = Mapping[TopicPartition, Checkpoint]
"""A group's checkpoints, by remote partition."""


class LatestCheckpoints:
    """The latest checkpoints of every group. `update` adds checkpoints that were written or read."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, Checkpoint]] = {}

    def update(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Replace the latest checkpoint of each group and partition."""
        for each in checkpoints:
            self._groups.setdefault(each.consumer_group_id, {})[each.topic_partition] = each

    def of_group(self, group: str) -> Checkpoints:
        """Return the group's latest checkpoints."""
        return self._groups.get(group, {})

    def new(self, checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
        """Return those of the checkpoints that are to be written."""
        return [each for each in checkpoints if self._is_new(each)]

    def _is_new(self, checkpoint: Checkpoint) -> bool:
        last = self.of_group(checkpoint.consumer_group_id).get(checkpoint.topic_partition)
        if last is None or checkpoint.upstream_offset < last.upstream_offset:
            return True
        return checkpoint.downstream_offset > last.downstream_offset


def translated(
    group: str,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    translate: Callable[[TopicPartition, int], int | None],
    remote_topic: Callable[[str], str | None],
) -> list[Checkpoint]:
    """Return the checkpoints for a group's committed offsets, without those that cannot be translated.

    `translate` returns None or -1 for an offset that it cannot translate. `remote_topic` returns None for a
    topic that is not copied.
    """
    checkpoints = []
    for tp, position in committed.items():
        remote, downstream = remote_topic(tp.topic), translate(tp, position.offset)
        if remote is not None and downstream is not None and downstream >= 0:
            remote_tp = TopicPartition(remote, tp.partition)
            checkpoints.append(Checkpoint(group, remote_tp, position.offset, downstream, position.metadata))
    return checkpoints
