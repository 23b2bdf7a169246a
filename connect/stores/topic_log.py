"""TopicLog: a compacted topic that a worker reads whole and follows; Kafka's KafkaBasedLog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeAlias

from connect.stores.internal_topic import InternalTopic
from connect.stores.topic_loss import TopicLoss
from kafka_client import (
    NO_TIMEOUT_MS,
    Admin,
    Backoff,
    BatchFetcher,
    BatchProducer,
    Client,
    Fetched,
    IsolationLevel,
    TopicPartition,
)
from kafka_client.errors import MillstreamError, OffsetOutOfRange, UnreadableBatch
from kafka_client.fetcher.offsets import EARLIEST

_log = logging.getLogger(__name__)

BUFFER_BYTES = 8 * 1024 * 1024
"""Bytes that wait to be read or to be sent, each."""
PART_RECORDS = 1000
"""Records that `on_records` gets in one call; between two calls the loop does other work."""
_LOOK_MS = 500
"""How often a log that has no new records is looked at for lost ones."""
_SHORT_SECONDS = 0.05
"""How long to wait before the ends of a log are asked for again that is shorter than what was read."""

Pair: TypeAlias = tuple[bytes, bytes | None]
"""Key and value; None deletes the key."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record as it was read; `offset` is its own, `timestamp` in ms since 1970."""

    partition: int
    offset: int
    key: bytes
    value: bytes | None
    timestamp: int


OnRecords: TypeAlias = Callable[[list[LogRecord]], None]

OnLost: TypeAlias = Callable[[int], None]
"""Takes the number of a partition that has lost records."""


class TopicLog:
    """A topic that is read whole and followed. Open it with `await TopicLog.open(...)`, and `close` it.

    It reads on while brokers are away. `on_records` gets the records of a partition in order, each once. It
    must not raise: what it does not take is logged, and not given again.

    A topic may lose records that were read: it was deleted and made again, its records were deleted, or its
    log was truncated. Then `on_lost` is called, and the partition is read again from its start. So Kafka
    Connect's `auto.offset.reset` is earliest.
    """

    def __init__(
        self,
        client: Client,
        topic: InternalTopic,
        partitions: int,
        on_records: OnRecords,
        fetcher: BatchFetcher,
        on_lost: OnLost,
    ) -> None:
        self.topic = topic
        self.partition_count = partitions
        self._client = client
        self._on_records = on_records
        self._on_lost = on_lost
        self._fetcher = fetcher
        self._loss = TopicLoss()
        self._losses = 0
        self._tps = [TopicPartition(topic.name, number) for number in range(partitions)]
        self._positions = dict.fromkeys(self._tps, 0)
        self._advanced = asyncio.Event()
        self._delivery_timeout_ms = NO_TIMEOUT_MS
        self._producer: BatchProducer | None = None
        self._starting = asyncio.Lock()
        self._closing = AsyncExitStack()
        self._follower: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        client: Client,
        topic: InternalTopic,
        on_records: OnRecords,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        delivery_timeout_ms: int = NO_TIMEOUT_MS,
        on_lost: OnLost = lambda partition: None,
    ) -> TopicLog:
        """Create the topic if it is missing, and read it to its end.

        `delivery_timeout_ms` bounds a `send`. Raises what `InternalTopic.ensure` raises.
        """
        partitions = await topic.ensure(client)
        fetcher = BatchFetcher(
            client,
            isolation_level=isolation_level,
            buffer_max_bytes=BUFFER_BYTES,
            auto_offset_reset="none",  # what is outside the log is noticed here
        )
        log = cls(client, topic, partitions, on_records, fetcher, on_lost)
        log._delivery_timeout_ms = delivery_timeout_ms
        log._closing.push_async_callback(fetcher.close)
        fetcher.assign(dict.fromkeys(log._tps, EARLIEST))
        log._follower = asyncio.create_task(log._follow(), name=f"follow {topic.name}")
        log._closing.push_async_callback(_cancel, log._follower)
        try:
            await log.read_to_end()
        except BaseException:
            await log.close()
            raise
        return log

    async def send(self, pairs: Sequence[Pair]) -> dict[int, int]:
        """Append records in order, and return once all in-sync replicas have them.

        The result is the offset of each partition's first record, or -1 if the broker has forgotten it. A
        key's partition is that of Kafka's default partitioner. While brokers are away the call waits, for at
        most the delivery timeout. Raises KafkaError if a record is refused, or RequestTimedOut: of the others
        some may be written.
        """
        producer = await self._started_producer()
        records = [(-1, key, value, ()) for key, value in pairs]
        parts = producer.partitioned(self.topic.name, records, self.partition_count)
        futures = {
            partition: await producer.send(self.topic.name, partition, part)
            for partition, part in parts.items()
        }
        # All are waited for, so that none fails unnoticed.
        firsts = await asyncio.gather(*futures.values(), return_exceptions=True)
        offsets: dict[int, int] = {}
        for partition, first in zip(futures, firsts, strict=True):
            if isinstance(first, BaseException):
                raise first
            offsets[partition] = -1 if first is None else first
        return offsets

    def position(self, partition: int) -> int:
        """Return the offset after the last record of a partition that `on_records` was given."""
        return self._positions[TopicPartition(self.topic.name, partition)]

    def backoff(self) -> Backoff:
        """Return a new backoff, with the client's retry settings."""
        return self._client.backoff()

    async def read_to_end(self) -> None:
        """Return once everything that the topic held at the call has been given to `on_records`.

        With read_committed this waits for transactions that are open at the call (KIP-618). Raises
        RequestTimedOut or ConnectionClosed if the brokers do not tell the topic's ends.
        """
        while not await self._is_read_to_end():
            pass

    async def _is_read_to_end(self) -> bool:
        """Read up to the ends at the call; return False if the log has lost records meanwhile."""
        losses, before = self._losses, dict(self._positions)
        admin = Admin(self._client)
        ends = await admin.list_offsets(dict.fromkeys(self._tps, "latest"))
        starts = await admin.list_offsets(dict.fromkeys(self._tps, "earliest"))
        if any(end.offset < before[tp] for tp, end in ends.items()):
            await asyncio.sleep(_SHORT_SECONDS)
            return False
        # Of a partition whose records are all deleted, there is nothing to be read.
        behind = {tp: end.offset for tp, end in ends.items() if end.offset > starts[tp].offset}
        while self._losses == losses and any(self._positions[tp] < end for tp, end in behind.items()):
            self._advanced.clear()
            await self._advanced.wait()
        return self._losses == losses

    async def close(self) -> None:
        """Stop following; what is being sent and not acknowledged fails with ConnectionClosed."""
        await self._closing.aclose()

    async def _started_producer(self) -> BatchProducer:
        async with self._starting:
            if self._producer is None:
                producer = BatchProducer(
                    self._client,
                    linger_ms=0,
                    buffer_memory=BUFFER_BYTES,
                    delivery_timeout_ms=self._delivery_timeout_ms,
                )
                await producer.start()
                self._closing.push_async_callback(producer.close, timeout_ms=0)
                self._producer = producer
            return self._producer

    async def _follow(self) -> None:
        """Read on until cancelled, whatever happens."""
        backoff = self._client.backoff()
        while True:
            try:
                batches = await self._fetcher.fetch(timeout_ms=_LOOK_MS)
                cut = self._look_for_losses()
                for fetched in batches:
                    if fetched.tp not in cut:
                        await self._take(fetched)
                        self._positions[fetched.tp] = fetched.next_offset
                        self._advanced.set()
                backoff.reset()
            except MillstreamError as e:
                if not self._look_for_losses() and not isinstance(e, OffsetOutOfRange):
                    _log.warning("topic %s cannot be read, trying again: %s", self.topic.name, e)
                    await asyncio.sleep(backoff.next())
                for tp in self._fetcher.failures():
                    self._fetcher.seek(tp, self._fetcher.position(tp))

    def _look_for_losses(self) -> Collection[TopicPartition]:
        """Begin again with the partitions that have lost records since the last look, and return them."""
        metadata = self._client.cached_metadata.topics.get(self.topic.name)
        if metadata is not None and self._loss.is_other_topic(metadata.topic_id):
            self._begin_again(self._tps, "it was deleted and made again")
            return self._tps
        fetcher, failures = self._fetcher, self._fetcher.failures()
        outside = [tp for tp in self._tps if isinstance(failures.get(tp), OffsetOutOfRange)]
        cut = [
            tp
            for tp in self._tps
            if tp not in outside and self._loss.is_cut(tp, fetcher.log_start_offset(tp), self._positions[tp])
        ]
        if outside:
            self._begin_again(outside, str(failures[outside[0]]))
        if cut:
            self._begin_again(cut, "records were deleted from its start")
        return {*outside, *cut}

    def _begin_again(self, tps: Sequence[TopicPartition], reason: str) -> None:
        """Read partitions again from their starts."""
        _log.error(
            "topic %s (%s) has lost %s that this worker had read, in partition %s: %s. It is read again "
            "from its start; what is lost stays in this worker's memory until the worker ends",
            self.topic.name,
            self.topic.setting,
            self.topic.purpose,
            ", ".join(str(tp.partition) for tp in tps),
            reason,
        )
        self._loss.forget_starts(tps)
        self._losses += 1
        for tp in tps:
            self._positions[tp] = 0
            self._fetcher.seek(tp, EARLIEST)
            self._on_lost(tp.partition)
        self._advanced.set()

    async def _take(self, fetched: Fetched) -> None:
        partition = fetched.tp.partition
        for part in fetched.parts(PART_RECORDS, on_unreadable=self._pass_over):
            records = [
                LogRecord(partition, offset, key, value, timestamp)
                for offset, timestamp, key, value, _ in part.records
                if key is not None
            ]
            if not records:
                continue
            try:
                self._on_records(records)
            except Exception:
                _log.exception(
                    "records %d to %d of %s are lost to this worker",
                    records[0].offset,
                    records[-1].offset,
                    fetched.tp,
                )
            await asyncio.sleep(0)

    def _pass_over(self, unreadable: UnreadableBatch) -> None:
        _log.error("%s is left out: %s", self.topic.name, unreadable)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
