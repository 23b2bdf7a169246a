"""Deleting records that nobody reads again from topics that would grow for ever.

In repartition topics these are the committed records, as in Kafka Streams (``repartition.purge.interval.ms``,
KIP-811). In changelogs of windows and sessions they are the records before all retained ones: stores drop
expired segments by stream time, and write no tombstones. A purge runs beside the tasks; after a failure the
next one deletes the same records.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafka_client import Admin, Client
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from kafka_client.topic_partition import TopicPartition
from streams.runtime.task.environment import Clock
from streams.runtime.task.running import RunningTask

log = logging.getLogger(__name__)


class Purge:
    """The deletion of records from one kind of topics. ``what``: the name of that kind in log messages."""

    def __init__(self, client: Client, what: str, *, interval_ms: int, clock: Clock) -> None:
        self._client = client
        self._what = what
        self._interval_ms = interval_ms
        self._clock = clock
        self._due_at = clock() + interval_ms
        self._needless: dict[TopicPartition, int] = {}
        self._purged: dict[TopicPartition, int] = {}
        self._purging: asyncio.Task[None] | None = None
        self._refused: set[str] = set()
        """The topics whose policy forbids deletion."""

    def may_go(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets with the next purge."""
        for tp, offset in before.items():
            if offset > self._purged.get(tp, 0) and tp.topic not in self._refused:
                self._needless[tp] = offset

    def start_if_due(self) -> None:
        """Begin a purge if it is due, there are records to delete, and no purge is under way."""
        if not self._needless or self._clock() < self._due_at:
            return
        if self._purging is None or self._purging.done():
            self._due_at = self._clock() + self._interval_ms
            self._purging = asyncio.create_task(self._purge_all(), name=f"purge {self._what}")

    async def _purge_all(self) -> None:
        before = dict(self._needless)
        for topic in sorted({tp.topic for tp in before}):
            await self._purge(topic, {tp: offset for tp, offset in before.items() if tp.topic == topic})

    async def _purge(self, topic: str, before: Mapping[TopicPartition, int]) -> None:
        try:
            await Admin(self._client).delete_records(before)
        except MillstreamError as error:
            if isinstance(error, KafkaError) and error.code == ErrorCode.POLICY_VIOLATION:
                self._refuse(topic, error)
            else:
                log.warning("%s are not purged, trying again later: %s", self._what, error)
        except Exception:
            log.exception("%s are not purged, trying again later", self._what)
        else:
            self._purged.update(before)
            for tp, offset in before.items():
                if self._needless[tp] == offset:
                    del self._needless[tp]

    def _refuse(self, topic: str, error: KafkaError) -> None:
        self._refused.add(topic)
        self._needless = {tp: offset for tp, offset in self._needless.items() if tp.topic != topic}
        log.warning(
            "%s is not purged, and grows: %s. Give it cleanup.policy=compact,delete, retention.ms=-1 and "
            "retention.bytes=-1, and start the application again",
            topic,
            error,
        )

    async def close(self) -> None:
        """Cancel the purge under way."""
        if self._purging is not None:
            self._purging.cancel()
            await asyncio.wait([self._purging])


class RepartitionPurge(Purge):
    """The deletion of committed records from repartition topics. ``topics``: their names."""

    def __init__(self, client: Client, topics: Collection[str], *, interval_ms: int, clock: Clock) -> None:
        super().__init__(client, "repartition topics", interval_ms=interval_ms, clock=clock)
        self.topics = frozenset(topics)
        """The repartition topics."""

    def committed(self, positions: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these committed positions with the next purge, in repartition topics."""
        self.may_go({tp: offset for tp, offset in positions.items() if tp.topic in self.topics})


@dataclass(frozen=True, slots=True, kw_only=True)
class Purges:
    """The deletions of records that nobody needs after a commit."""

    repartitions: RepartitionPurge
    changelogs: Purge

    def start_if_due(self) -> None:
        """Begin the deletions that are due."""
        self.repartitions.start_if_due()
        self.changelogs.start_if_due()

    def committed(self, running: RunningTask) -> None:
        """Note the records that a committed task no longer needs."""
        self.repartitions.committed(running.task.committed)
        self.changelogs.may_go(running.needed_from)

    async def close(self) -> None:
        """Cancel the deletions under way."""
        await self.repartitions.close()
        await self.changelogs.close()
