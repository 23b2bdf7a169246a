"""Commits groups' places in the target, so that their consumers go on there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_client import Admin, OffsetAndMetadata, TopicPartition
from kafka_client.errors import KafkaError
from mirror.checkpoints.group_offsets import WITHOUT_MEMBERS
from mirror.config import Cluster
from mirror.failover.group_places import GroupPlace
from mirror.inspection import client_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCommit:
    """The offsets to commit for a group, and those that they replace. `why_not` is None if it can be done."""

    group: str
    offsets: dict[TopicPartition, OffsetAndMetadata]
    replaced: dict[TopicPartition, int | None]
    why_not: str | None


def commits(places: Iterable[GroupPlace]) -> list[GroupCommit]:
    """Return the commits that bring each group to its places. An offset never goes back."""
    groups: dict[str, list[GroupPlace]] = {}
    for place in places:
        if place.offset is not None and place.offset != place.committed:
            groups.setdefault(place.group, []).append(place)
    return [_commit(group, each) for group, each in groups.items()]


def _commit(group: str, places: list[GroupPlace]) -> GroupCommit:
    state = places[0].target_state
    return GroupCommit(
        group=group,
        offsets={each.remote: OffsetAndMetadata(each.offset or 0, each.metadata) for each in places},
        replaced={each.remote: each.committed for each in places},
        why_not=None if state in WITHOUT_MEMBERS else f"it has members in the target ({state})",
    )


async def execute(target: Cluster, planned: Iterable[GroupCommit]) -> dict[str, KafkaError]:
    """Commit what can be committed. Return the errors of the groups that the target refused."""
    errors: dict[str, KafkaError] = {}
    async with client_of(target) as client:
        for each in planned:
            if each.why_not is None:
                try:
                    await Admin(client).alter_group_offsets(each.group, each.offsets)
                except KafkaError as e:
                    errors[each.group] = e
    return errors
