"""Sources of records: partitions read alone, or a group member's share of them.

Both know the offset at which each partition ends, if reading is to end, and report when all are reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from kafka_client import Admin, Consumer, Fetched, IsolationLevel, TopicPartition
from kafka_client.errors import RebalanceNeeded
from millstream.commands.consume.positions import end_offsets

_LOOK_MS = 500
"""How often positions are checked: they also pass control records, which are not returned."""


class Source:
    """A consumer, and the offsets at which reading ends (None: never)."""

    def __init__(self, consumer: Consumer, ends: Mapping[TopicPartition, int] | None) -> None:
        self.consumer = consumer
        self.ends = None if ends is None else dict(ends)

    @property
    def remaining(self) -> int | None:
        """The number of offsets up to the end.

        None if reading does not end, or a position is not known yet.
        """
        if self.ends is None:
            return None
        positions = {tp: self.consumer.position(tp) for tp in self.ends}
        return (
            None
            if min(positions.values(), default=0) < 0
            else sum(end - positions[tp] for tp, end in self.ends.items())
        )

    @property
    def is_at_end(self) -> bool:
        """True if every partition was returned up to the offset at which reading ends."""
        if self.ends is None:
            return False
        return all(self.consumer.position(tp) >= end for tp, end in self.ends.items())

    async def fetch(self, timeout_ms: int | None) -> list[Fetched]:
        """Return fetched records; an empty list after `timeout_ms`, or when `is_at_end` is to be checked."""
        look = None if self.ends is None else _LOOK_MS
        return await self.consumer.fetch(
            timeout_ms=min((each for each in (look, timeout_ms) if each is not None), default=None)
        )

    def note_printed(self, tp: TopicPartition, offset: int) -> None:
        """Note that all records before `offset` are printed. Only a group member keeps the offset."""

    async def commit(self) -> str | None:
        """Commit the offsets of printed records. Return a message for the user, or None."""
        return None

    async def close(self) -> None:
        """Close the consumer; a member leaves the group."""
        await self.consumer.close()


class GroupSource(Source):
    """A member of a group, which commits the offsets of printed records and no others."""

    def __init__(self, consumer: Consumer, admin: Admin, *, to_end: bool, isolation: IsolationLevel) -> None:
        super().__init__(consumer, {} if to_end else None)
        self._admin = admin
        self._isolation = isolation
        self._printed: dict[TopicPartition, int] = {}

    async def join(self, topics: Sequence[str] | re.Pattern[str]) -> Self:
        """Join the group and wait for the first assignment."""
        await self.consumer.subscribe(
            topics, on_assigned=self._assigned, on_revoked=self._revoked, on_lost=self._lost
        )
        await self.consumer.wait_assigned()
        return self

    def note_printed(self, tp: TopicPartition, offset: int) -> None:
        """Note that all records before `offset` are printed, for the next commit."""
        if tp in self.consumer.assignment:
            self._printed[tp] = offset

    async def commit(self) -> str | None:
        """Commit the offsets printed since the last commit. Return a message if the group has rebalanced."""
        printed, self._printed = self._printed, {}
        if not printed:
            return None
        try:
            await self.consumer.commit(printed)
        except RebalanceNeeded as error:
            return f"the group's partitions have moved, offsets were not committed ({error}): they come again"
        return None

    async def _assigned(self, added: set[TopicPartition]) -> None:
        if self.ends is not None and added:
            self.ends.update(await end_offsets(self._admin, added, self._isolation))

    async def _revoked(self, revoked: set[TopicPartition]) -> None:
        await self.commit()
        self._lost(revoked)

    def _lost(self, lost: Iterable[TopicPartition]) -> None:
        for tp in lost:
            self._printed.pop(tp, None)
            if self.ends is not None:
                self.ends.pop(tp, None)
