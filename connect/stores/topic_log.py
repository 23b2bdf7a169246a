"""TopicLog: a compacted topic that a worker reads whole and follows; Kafka's KafkaBasedLog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeAlias

from connect.stores.internal_topic import InternalTopic
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
from kafka_client.errors import MillstreamError, UnreadableBatch
from kafka_client.fetcher.offsets import EARLIEST

_log = logging.getLogger(__name__)

BUFFER_BYTES = 8 * 1024 * 1024
"""Bytes that wait to be read or to be sent, each."""
PART_RECORDS = 1000
"""Records that `on_records` gets in one call; between two calls the loop does other work."""

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


class TopicLog:
    """A topic that is read whole and followed. Open it with `await TopicLog.open(...)`, and `close` it.

    It reads on while brokers are away. `on_records` gets the records of a partition in order, each once. It
    must not raise: what it does not take is logged, and not given again.
    """

    def __init__(
        self,
        client: Client,
        topic: InternalTopic,
        partitions: int,
        on_records: OnRecords,
        fetcher: BatchFetcher,
    ) -> None:
        self.topic = topic
        self.partition_count = partitions
        self._client = client
        self._on_records = on_records
        self._fetcher = fetcher
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
    ) -> TopicLog:
        """Create the topic if it is missing, and read it to its end.

        `delivery_timeout_ms` bounds a `send`. Raises what `InternalTopic.ensure` raises.
        """
        partitions = await topic.ensure(client)
        fetcher = BatchFetcher(
            client,
            isolation_level=isolation_level,
            buffer_max_bytes=BUFFER_BYTES,
            auto_offset_reset="earliest",
        )
        log = cls(client, topic, partitions, on_records, fetcher)
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
        admin = Admin(self._client)
        ends = await admin.list_offsets(dict.fromkeys(self._tps, "latest"))
        starts = await admin.list_offsets(dict.fromkeys(self._tps, "earliest"))
        # Of a partition whose records are all deleted, there is nothing to be read.
        behind = {tp: end.offset for tp, end in ends.items() if end.offset > starts[tp].offset}
        while any(self._positions[tp] < end for tp, end in behind.items()):
            self._advanced.clear()
            await self._advanced.wait()

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
                for fetched in await self._fetcher.fetch():
                    await self._take(fetched)
                    self._positions[fetched.tp] = fetched.next_offset
                    self._advanced.set()
                backoff.reset()
            except MillstreamError as e:
                _log.warning("topic %s cannot be read, trying again: %s", self.topic.name, e)
                await asyncio.sleep(backoff.next())
                for tp in self._fetcher.failures():
                    self._fetcher.seek(tp, self._fetcher.position(tp))

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
