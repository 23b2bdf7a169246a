"""Commits that a group's coordinator refuses for their size: what to tell people of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kafka_client import Admin, Client, ResourceType
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from streams.errors import CommitRefused
from streams.runtime.commit.guarantees import Commit, bytes_of

METADATA_LIMIT = "offset.metadata.max.bytes"
SIZE_LIMIT = "max.message.bytes of __consumer_offsets"
ASK_SECONDS = 5.0
"""How long to wait for a broker to say what its limit is."""

Limit = Callable[[], Awaitable[int | None]]
"""The longest note, in characters, that the group's coordinator takes; None: it does not say."""

FOR_THEIR_SIZE = frozenset((ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE))
"""Why a commit is refused that is too large."""


def metadata_limit(client: Client, group_id: str) -> Limit:
    """Ask the group's coordinator, which may not tell everybody."""

    async def ask() -> int | None:
        try:
            async with asyncio.timeout(ASK_SECONDS):
                node = await client.coordinator(group_id)
                configs = await Admin(client).describe_configs(
                    str(node), ResourceType.BROKER, keys=[METADATA_LIMIT]
                )
        except (MillstreamError, TimeoutError):
            return None
        entry = configs.get(METADATA_LIMIT)
        return None if entry is None or entry.value is None else int(entry.value)

    return ask


async def refused_for_size(error: KafkaError, commit: Commit, limit: Limit) -> CommitRefused | None:
    """Return the error that names task, size and limit if this commit was too large, or else None."""
    if error.code not in FOR_THEIR_SIZE or not commit.flushes:
        return None
    if error.code == ErrorCode.INVALID_COMMIT_OFFSET_SIZE:
        size, task = max((bytes_of(offsets), running.task.id) for running, offsets in commit.by_task())
        return CommitRefused(str(task), "all that is committed for it", size, None, SIZE_LIMIT)
    length, task, tp = max(
        (len(each.metadata), running.task.id, tp)
        for running, offsets in commit.by_task()
        for tp, each in offsets.items()
    )
    return CommitRefused(
        str(task), f"the note with the offset of {tp}", length, await limit(), METADATA_LIMIT
    )
