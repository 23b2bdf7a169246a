"""Finds the consumer groups of the source whose offsets are translated."""

from __future__ import annotations

from collections.abc import Callable

from kafka_client import Admin, ListedGroup
from mirror.filters import NameFilter

_GROUP_TYPES = ("", "classic", "consumer")
_PROTOCOL_TYPES = ("", "consumer")


def is_consumer_group(group: ListedGroup) -> bool:
    """Return True if the group's offsets are those of consumers, and no worker's or share group's."""
    return group.type.lower() in _GROUP_TYPES and group.protocol_type in _PROTOCOL_TYPES


async def find_groups(
    source: Admin, names: NameFilter, remote_topic: Callable[[str], str | None]
) -> set[str]:
    """Return the groups that pass the filter and have an offset in a copied topic.

    `remote_topic` returns None for a topic that is not copied. Raises MillstreamError if the source fails.
    """
    listed = [group.group_id for group in await source.list_groups() if is_consumer_group(group)]
    chosen = set()
    for name in filter(names.takes, listed):
        if any(map(remote_topic, {tp.topic for tp in await source.list_group_offsets(name)})):
            chosen.add(name)
    return chosen
