"""Deleting what is committed of repartition topics, which nobody reads again; they would grow for ever.

Kafka Streams does the same (``repartition.purge.interval.ms``, KIP-811). It is never in the way: a purge runs
beside the tasks, and one that fails is made up for by the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

from logd.client import Admin, Client
from logd.errors import MillstreamError
from logd.topic_partition import TopicPartition
from streams.runtime.task import Clock

log = logging.getLogger(__name__)


class RepartitionPurge:
    """Hears of commits, and purges every ``interval_ms``. ``topics``: the repartition topics' names."""

    def __init__(self, client: Client, topics: Collection[str], *, interval_ms: int, clock: Clock) -> None:
        self._client = client
        self.topics = frozenset(topics)
        """The repartition topics."""
        self._interval_ms = interval_ms
        self._clock = clock
        self._due_at = clock() + interval_ms
        self._committed: dict[TopicPartition, int] = {}
        self._purged: dict[TopicPartition, int] = {}
        self._purging: asyncio.Task[None] | None = None

    def committed(self, positions: Mapping[TopicPartition, int]) -> None:
        """These positions are committed: of repartition topics, what lies before them may go."""
        for tp, offset in positions.items():
            if tp.topic in self.topics and offset > self._purged.get(tp, 0):
                self._committed[tp] = offset

    def start_if_due(self) -> None:
        """Begin a purge if it is time, there is something to purge, and none is under way."""
        if not self._committed or self._clock() < self._due_at:
            return
        if self._purging is None or self._purging.done():
            self._due_at = self._clock() + self._interval_ms
            self._purging = asyncio.create_task(self._purge(dict(self._committed)), name="repartition-purge")

    async def _purge(self, before: Mapping[TopicPartition, int]) -> None:
        try:
            await Admin(self._client).delete_records(before)
        except MillstreamError as error:
            log.warning("repartition topics are not purged, trying again later: %s", error)
        except Exception:
            log.exception("repartition topics are not purged, trying again later")
        else:
            self._purged.update(before)
            for tp, offset in before.items():
                if self._committed[tp] == offset:
                    del self._committed[tp]

    async def close(self) -> None:
        """Break off a purge that is under way."""
        if self._purging is not None:
            self._purging.cancel()
            await asyncio.wait([self._purging])
