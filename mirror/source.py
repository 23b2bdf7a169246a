"""The copying itself: batches fetched from the source, produced to the target, partition to same partition.

Nothing is done per record on the way. One task runs `copy`; acks are looked at in order as they come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from logd.client import NO_TIMEOUT_MS, BatchFetcher, BatchProducer, Client, Fetched, TopicPartition
from logd.errors import KafkaError, OffsetOutOfRange
from mirror.errors import ForeignWrite, NotPassed, RecordsLost, SourceRecreated
from mirror.offsets import OffsetSync, OffsetSyncs
from mirror.passing import Passed, pass_on
from mirror.position import Position

BUFFER_MEMORY = 64 << 20
REQUEST_SIZE_MAX = 16 << 20
"""Of one batch: what the target takes (`max.message.bytes`) is the target's to say."""
FETCH_WAIT_MS = 500
CLOSE_MS = 5_000


@dataclass(slots=True)
class _InFlight:
    passed: Passed
    size: int
    max_timestamp: int
    future: asyncio.Future[int | None]


@dataclass(slots=True)
class PartitionCopy:
    """State of one partition's copy. `upstream` offsets are the source's, `downstream` the target's."""

    tp: TopicPartition
    remote: TopicPartition
    topic_id: bytes
    remote_topic_id: bytes
    position: int
    """Next upstream offset to read."""
    downstream: int
    """Downstream offset the next batch to be acked must get."""
    end: int = -1
    """The source's last stable offset, as last heard."""
    copied: int = -1
    """Upstream offset behind the last acked batch."""
    timestamp: int = -1
    """Newest timestamp of the last acked batch, ms."""
    records: int = 0
    bytes: int = 0
    sync: OffsetSync | None = None
    """Of the last acked batch; written when it is time."""
    in_flight: deque[_InFlight] = field(default_factory=deque)

    def lag_records(self) -> int:
        """Offsets of the source that are not acked by the target yet."""
        return max(self.end - self.copied, 0)

    def lag_seconds(self, now: float) -> float:
        """How old the copy's newest record is, 0 when nothing is missing."""
        return max(now - self.timestamp / 1000, 0.0) if self.lag_records() and self.timestamp >= 0 else 0.0


class MirrorSource:
    """Copies the partitions it was given. `open`, then `copy` again and again, then `close`.

    Every error is a MirrorError, of one partition, or what `logd.client` raises.
    """

    def __init__(
        self,
        source: Client,
        target: Client,
        syncs: OffsetSyncs,
        *,
        sync_interval: float,
        clock: Callable[[], float],
    ) -> None:
        self._syncs = syncs
        self._sync_interval = sync_interval
        self._clock = clock
        self._synced_at = clock()
        self._fetcher = BatchFetcher(
            source, isolation_level="read_committed", fetch_max_wait_ms=FETCH_WAIT_MS
        )
        self._source = source
        self._producer = BatchProducer(
            target,
            linger_ms=0,
            max_request_size=REQUEST_SIZE_MAX,
            buffer_memory=BUFFER_MEMORY,
            delivery_timeout_ms=NO_TIMEOUT_MS,
        )
        self.copies: dict[TopicPartition, PartitionCopy] = {}

    async def open(self) -> None:
        """Get ready to produce."""
        await self._producer.start()

    def add(
        self,
        tp: TopicPartition,
        remote: TopicPartition,
        topic_id: bytes,
        remote_topic_id: bytes,
        position: Position,
        end: int,
    ) -> None:
        """Copy this partition too, from `position` on; `end` is the source's now."""
        self.copies[tp] = PartitionCopy(
            tp,
            remote,
            topic_id,
            remote_topic_id,
            position.upstream,
            position.downstream,
            end,
            copied=position.upstream,
        )
        self._fetcher.add(tp, position.upstream)

    def remove(self, tp: TopicPartition) -> None:
        """Copy this partition no more. Call `settle` before."""
        self._fetcher.remove(tp)
        _forget(self.copies.pop(tp))

    def check_topic(self, tp: TopicPartition, topic_id: bytes) -> None:
        """Another topic of the same name would be copied from the middle, behind the first one's records."""
        copied = self.copies[tp].topic_id
        if any(topic_id) and any(copied) and topic_id != copied:
            raise SourceRecreated(tp, f"topic id {topic_id.hex()}, it was {copied.hex()} when copying began")

    async def copy(self, *, timeout_ms: int = FETCH_WAIT_MS) -> None:
        """Pass on what is there; returns after one helping, or `timeout_ms` without any."""
        try:
            helping = await self._fetcher.fetch(timeout_ms=timeout_ms)
        except OffsetOutOfRange as e:
            tp = TopicPartition(e.topic, e.partition)
            self.check_topic(tp, (await self._source.topic(tp.topic)).topic_id)
            lost = f"offset {e.offset} is wanted, the source has {e.start} to {e.end}"
            raise RecordsLost(tp, lost) from e
        for fetched in helping:
            await self._pass_on(self.copies[fetched.tp], fetched)
        self._take_acks()
        if self._clock() - self._synced_at >= self._sync_interval:
            await self._write_syncs()

    def is_at(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether everything before these upstream offsets was read and acked."""
        return all(
            not self.copies[tp].in_flight and self.copies[tp].position >= end
            for tp, end in ends.items()
            if tp in self.copies
        )

    async def settle(self) -> None:
        """Wait for the acks of everything passed on, and leave a sync behind it."""
        await self._producer.flush()
        self._take_acks()
        await self._write_syncs()
        await self._syncs.flush()

    async def close(self) -> None:
        """Stop. What is not acked is found out at the next start."""
        await self._fetcher.close()
        await self._producer.close(timeout_ms=CLOSE_MS)
        for copy in self.copies.values():
            _forget(copy)

    async def _pass_on(self, copy: PartitionCopy, fetched: Fetched) -> None:
        self.check_topic(copy.tp, fetched.topic_id)
        copy.end = max(copy.end, fetched.last_stable_offset, fetched.next_offset)
        for header, batch in fetched.batches():
            passed = pass_on(header, batch, copy.position)
            if passed is None:
                continue
            if self._syncs.latest(copy.tp) is None:
                await self._write_first_sync(copy, passed.first_offset)
            try:
                future = await self._producer.send_batch(*copy.remote, passed.batch)
            except KafkaError as e:
                raise NotPassed(
                    copy.tp, f"{copy.remote} does not take the batch at {header.base_offset}: {e}"
                ) from e
            copy.in_flight.append(_InFlight(passed, header.size, header.max_timestamp, future))
        copy.position = fetched.next_offset
        if not copy.in_flight:
            copy.copied = copy.position

    def _take_acks(self) -> None:
        for copy in self.copies.values():
            while copy.in_flight and copy.in_flight[0].future.done():
                self._take_ack(copy, copy.in_flight.popleft())
            if not copy.in_flight:
                copy.copied = copy.position

    def _take_ack(self, copy: PartitionCopy, sent: _InFlight) -> None:
        passed = sent.passed
        try:
            offset = sent.future.result()
        except KafkaError as e:
            raise NotPassed(
                copy.tp, f"{copy.remote} does not take the batch at {passed.first_offset}: {e}"
            ) from e
        if offset != copy.downstream:
            behind = offset is not None and offset < copy.downstream
            why = "it was deleted or cut back" if behind else "somebody else writes there"
            raise ForeignWrite(copy.tp, f"{copy.remote} gave offset {offset}, not {copy.downstream}: {why}")
        copy.downstream += passed.records
        copy.sync = OffsetSync(
            copy.tp,
            passed.first_offset,
            offset,
            passed.next_offset,
            copy.downstream,
            copy.topic_id,
            copy.remote_topic_id,
        )
        copy.copied = passed.next_offset
        copy.timestamp = sent.max_timestamp
        copy.records += passed.records
        copy.bytes += sent.size

    async def _write_first_sync(self, copy: PartitionCopy, first_offset: int) -> None:
        """Before the first record: without a sync nothing could be said after a kill."""
        at = (first_offset, copy.downstream)
        sync = OffsetSync(copy.tp, *at, *at, copy.topic_id, copy.remote_topic_id)
        await (await self._syncs.write(sync, int(self._clock() * 1000)))

    async def _write_syncs(self) -> None:
        self._synced_at = self._clock()
        for copy in self.copies.values():
            if copy.sync is not None and copy.sync != self._syncs.latest(copy.tp):
                await self._syncs.write(copy.sync, int(self._synced_at * 1000))


def _forget(copy: PartitionCopy) -> None:
    """Whatever becomes of what is in flight, nobody will ask."""
    for sent in copy.in_flight:
        sent.future.add_done_callback(lambda future: future.cancelled() or future.exception())
