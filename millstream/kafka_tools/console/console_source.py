"""The source of `kafka-console-consumer`: topics as a member of a group, or one partition.

It does not wait for the assignment, since the tool's `--timeout-ms` counts from the beginning.
"""

from __future__ import annotations

import re

from kafka_client import Consumer, Fetched, TopicPartition
from millstream.commands.consume.source import GroupSource
from millstream.kafka_tools.console.message_formatter import TimestampTypes
from millstream.terminal.session import Session


class ConsoleSource(GroupSource):
    """A consumer whose batches' timestamp types are noted; offsets are committed if `commits`."""

    def __init__(self, session: Session, consumer: Consumer, types: TimestampTypes, *, commits: bool) -> None:
        super().__init__(consumer, session.admin, to_end=False, isolation="read_uncommitted")
        self._types = types
        self._commits = commits

    async def subscribe(self, topics: str | re.Pattern[str]) -> None:
        """Begin to join the group."""
        await self.consumer.subscribe(
            [topics] if isinstance(topics, str) else topics,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_lost=self._lost,
        )

    async def assign(self, tp: TopicPartition, offset: int) -> None:
        """Read one partition, from an offset (-2 earliest, -1 latest)."""
        await self.consumer.assign({tp: offset})

    async def fetch(self, timeout_ms: int | None) -> list[Fetched]:
        """Fetch batches, and note the timestamp type of their records."""
        fetched = await super().fetch(timeout_ms)
        self._types.note(fetched)
        return fetched

    async def commit(self) -> str | None:
        """Commit what was printed, where that is wanted."""
        return await super().commit() if self._commits else None
