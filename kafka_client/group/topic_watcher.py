"""The topics of a subscription, and the check for new topics and partitions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

from kafka_client.cluster.cluster import Client
from kafka_client.errors import MillstreamError
from kafka_client.group.consumer_protocol import ConsumerProtocol, partition_counts
from kafka_client.group.group import GroupMember

MISSING_TOPIC_CHECK_S = 1.0
"""Seconds between checks for topics that do not exist yet."""
_CHECK_S_MIN = 0.01
"""Seconds between two checks at least, also with metadata.max.age.ms=0."""


class TopicWatcher:
    """The topics that a group member subscribes to, and a task that makes it join again when they change.

    `check_s`: seconds between two checks. `failed` is called with an unexpected error that ends the task.
    """

    def __init__(
        self,
        client: Client,
        protocols: Sequence[ConsumerProtocol],
        *,
        check_s: float,
        failed: Callable[[BaseException], None],
    ) -> None:
        self.topics: list[str] = []
        """The subscribed topics, sorted; with a pattern, the topics that matched it at the last check."""
        self._client = client
        self._protocols = protocols
        self._check_s = max(check_s, _CHECK_S_MIN)
        self._failed = failed
        self._pattern: re.Pattern[str] | None = None
        self._task: asyncio.Task[None] | None = None

    async def subscribe(self, topics: Sequence[str] | re.Pattern[str]) -> None:
        """Set the subscription: these topics, or every topic whose whole name matches the pattern."""
        self._pattern = topics if isinstance(topics, re.Pattern) else None
        self.topics = [] if isinstance(topics, re.Pattern) else sorted(set(topics))
        await self._match_pattern()

    def start(self, member: GroupMember) -> None:
        """Start the task that watches the topics for `member`."""
        self._task = asyncio.create_task(self._watch(member), name=f"topics-{self._client.client_id}")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _match_pattern(self) -> bool:
        """Find the topics that match the pattern now. Return True if they have changed."""
        if self._pattern is None:
            return False
        topics = (await self._client.metadata(refresh=True)).topics.values()
        matching = sorted(t.name for t in topics if not t.is_internal and self._pattern.fullmatch(t.name))
        changed, self.topics = matching != self.topics, matching
        return changed

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    async def _watch(self, member: GroupMember) -> None:
        """Make the member join again after new matches of the pattern, new partitions, or a new topic."""
        pause = min(self._check_s, MISSING_TOPIC_CHECK_S)
        while True:
            await asyncio.sleep(pause)
            try:
                changed = await self._match_pattern()
                counts = await partition_counts(self._client, self.topics)
            except MillstreamError:
                continue  # The next check tries again; reading raises an error that lasts.
            if member.is_leader and member.is_stable:
                by = next(p.assigned_by_counts for p in self._protocols if p.name == member.protocol)
                changed = changed or any(by.get(topic, 0) != count for topic, count in counts.items())
            if changed:
                member.request_rejoin()
            missing = not self.topics or not all(counts.values())
            pause = min(self._check_s, MISSING_TOPIC_CHECK_S) if missing else self._check_s
