"""Writes the offset syncs of one source task, when MirrorMaker 2's task would write them.

A sync that is due at once is *pending*. The last copied record of a partition without a pending sync is
*delayed*: its sync is written when source offsets are committed, so that an idle partition has a sync of its
last record. Source: OffsetSyncWriter and MirrorSourceTask.PartitionState.
"""

from __future__ import annotations

import asyncio
import logging
import time

from kafka_client import NO_TIMEOUT_MS, BatchProducer, Client, TopicPartition
from mirror.records.offset_sync import OffsetSync

log = logging.getLogger(__name__)

IN_FLIGHT_MAX = 10
"""Syncs that wait for their acknowledgement; further ones replace each other by partition."""
CLOSE_MS = 5_000


class PartitionState:
    """The last offsets of one partition, which decide whether a sync is due."""

    def __init__(self, offset_lag_max: int) -> None:
        self._offset_lag_max = offset_lag_max
        self._previous: tuple[int, int] | None = None
        """Upstream and downstream offset of the last record."""
        self._synced: int | None = None
        """Downstream offset of the last sync."""

    def update(self, upstream: int, downstream: int, *, end: tuple[int, int] | None = None) -> bool:
        """Return True if a sync of this record is due.

        `end` has both offsets of the last record of a batch that begins with this one.
        """
        previous, self._previous = self._previous, end or (upstream, downstream)
        is_due = (
            self._synced is None
            or previous is None
            or downstream - (self._synced + 1) >= self._offset_lag_max
            or upstream != previous[0] + 1
            or downstream < previous[1]
        )
        if is_due:
            self._synced = downstream
        return is_due


class SyncWriter:
    """The syncs of one task. Call `open`, `copied` and `fire` as batches arrive, `close` at the end."""

    def __init__(self, client: Client, topic: str, offset_lag_max: int) -> None:
        self._topic = topic
        self._offset_lag_max = offset_lag_max
        self._producer = BatchProducer(client, delivery_timeout_ms=NO_TIMEOUT_MS)
        self._states: dict[TopicPartition, PartitionState] = {}
        self._pending: dict[TopicPartition, OffsetSync] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}
        self.in_flight = 0

    async def open(self) -> None:
        """Start the producer."""
        await self._producer.start()

    def copied(self, tp: TopicPartition, first: tuple[int, int], last: tuple[int, int]) -> None:
        """Take note of a copied batch by the upstream and downstream offsets of its first and last record."""
        state = self._states.setdefault(tp, PartitionState(self._offset_lag_max))
        if state.update(*first, end=last):
            self._pending[tp] = OffsetSync(tp, *first)
            self._delayed.pop(tp, None)
        if first != last or tp not in self._pending:
            self._delayed[tp] = OffsetSync(tp, *last)

    async def fire(self) -> None:
        """Send pending syncs, as many as may be in flight."""
        while self._pending and self.in_flight < IN_FLIGHT_MAX:
            tp = next(iter(self._pending))
            sync = self._pending.pop(tp)
            self.in_flight += 1
            record = (int(time.time() * 1000), sync.record_key, sync.record_value, ())
            sending = await self._producer.send(self._topic, 0, [record])
            sending.add_done_callback(self._ended)

    def promote_delayed(self) -> None:
        """Make the delayed syncs pending, except where a partition has a pending one."""
        for tp in [tp for tp in self._delayed if tp not in self._pending]:
            self._pending[tp] = self._delayed.pop(tp)

    async def close(self) -> None:
        """Stop, and wait at most `CLOSE_MS` for acknowledgements."""
        await self._producer.close(timeout_ms=CLOSE_MS)

    def _ended(self, sending: asyncio.Future[int | None]) -> None:
        self.in_flight -= 1
        if not sending.cancelled() and (error := sending.exception()) is not None:
            log.warning("%s takes no offset sync: %s", self._topic, error)
