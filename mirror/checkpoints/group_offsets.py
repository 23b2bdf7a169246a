"""Commits translated offsets in the target, for groups that have no members there."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client import Admin, OffsetAndMetadata, TopicPartition
from mirror.checkpoints.latest import Checkpoints

WITHOUT_MEMBERS = ("Empty", "Dead")
"""States of a group that has no members, and of one that does not exist."""


def offsets_to_commit(
    checkpoints: Checkpoints, current: Mapping[TopicPartition, OffsetAndMetadata]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the checkpoints' offsets that are ahead of the group's `current` offsets in the target.

    A group may have gone on in the target before its consumers moved back, so its offsets never go back.
    """
    return {
        tp: OffsetAndMetadata(checkpoint.downstream_offset, checkpoint.metadata)
        for tp, checkpoint in checkpoints.items()
        if tp not in current or current[tp].offset < checkpoint.downstream_offset
    }


async def commit_in_target(target: Admin, group: str, checkpoints: Checkpoints) -> None:
    """Commit the offsets of the checkpoints that are ahead, unless the group has members in the target.

    Raises KafkaError, also if a member joins meanwhile: the broker then refuses the commit.
    """
    described = await target.describe_groups([group])
    if described[group].state not in WITHOUT_MEMBERS:
        return
    offsets = offsets_to_commit(checkpoints, await target.list_group_offsets(group))
    if offsets:
        await target.alter_group_offsets(group, offsets)
