"""The batch producer: idempotent, in order per partition, bounded in memory.

`accumulator` holds the batches and their order, `backlog` all of them within a bound, `director` has them
sent; here is the front door. `transactional` puts transactions on top: their batches go the same way, through
a `gate`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Literal, Self

from kafka_client.cluster.cluster import Client
from kafka_client.errors import (
    ConfigError,
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    MillstreamError,
)
from kafka_client.futures import retrieve_failure
from kafka_client.metrics.metrics import Values
from kafka_client.producer.accumulator import PartitionQueue
from kafka_client.producer.backlog import Backlog
from kafka_client.producer.batch import PendingBatch
from kafka_client.producer.delivery import Delivery
from kafka_client.producer.director import Director
from kafka_client.producer.gate import TransactionGate
from kafka_client.producer.identity import Identity
from kafka_client.producer.node import ProduceSettings
from kafka_client.producer.partitioner import StickyPartitioner
from kafka_client.producer.producer_metrics import FLUSH, ProducerMetrics
from kafka_client.records import Codec, NewRecord, estimate_sizes, read_header
from kafka_client.records.partitioning import partition_for_key, split_by_partition
from kafka_client.topic_partition import TopicPartition

CompressionType = Literal["none", "gzip", "snappy", "lz4", "zstd"]

IN_FLIGHT_MAX = 5
"""A broker remembers the last five batches of a producer and partition, to recognise duplicates."""
NO_TIMEOUT_MS = (1 << 31) - 1
"""Delivery timeout of those who wait for brokers that are away, however long, as Kafka Connect does."""


class BatchProducer:
    """Sends records in batches to their partitions' leaders.

    `acks`: -1 all in-sync replicas, 1 the leader, 0 no answer is waited for. Idempotence needs -1; with
    other `acks` it is off. Without it a partition has one batch in flight, so that order is kept all the
    same.
    `linger_ms`: how long a batch that is not full waits for more. `batch_size`: bytes a batch aims at,
    before compression. `max_request_size`: bytes of a request; a record bigger than this is refused.
    `buffer_memory`: bytes of records that may wait for their ack; `send` waits for room.
    `delivery_timeout_ms`: after this a future fails with RequestTimedOut.
    `max_in_flight`: requests under way per broker, 1 to 5.
    `halt_on_failure`: where a batch failed, or the broker does not take the sequence, all batches of the
    partition behind fail, too, until `continue_at`; no epoch is raised. For those who continue what another
    process began, and must neither leave out nor repeat anything.
    `gate`: for `TransactionalProducer`, which decides what is sent when, and under which identity.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: int = -1,
        compression_type: CompressionType = "none",
        compression_level: int | None = None,
        linger_ms: float = 5,
        batch_size: int = 262_144,
        max_request_size: int = 1_048_576,
        enable_idempotence: bool = True,
        buffer_memory: int = 33_554_432,
        delivery_timeout_ms: int = 120_000,
        max_in_flight: int = IN_FLIGHT_MAX,
        halt_on_failure: bool = False,
        gate: TransactionGate | None = None,
    ) -> None:
        if acks not in (-1, 0, 1):
            raise ConfigError("acks", acks, "-1, 0 or 1")
        if not 1 <= max_in_flight <= IN_FLIGHT_MAX:
            raise ConfigError("max_in_flight", max_in_flight, f"1 to {IN_FLIGHT_MAX}")
        if buffer_memory < max_request_size:
            raise ConfigError(
                "buffer_memory", buffer_memory, f"at least max_request_size ({max_request_size})"
            )
        self.client = client
        self.codec = Codec.named(compression_type)
        self.max_request_size = max_request_size
        self.idempotent = enable_idempotence and acks == -1
        self._lane = client.new_lane("produce")
        self._gate = gate
        self._backlog = Backlog(buffer_memory, halts=halt_on_failure, gate=gate)
        self._metrics = ProducerMetrics()
        self._director = Director(
            client,
            lane=self._lane,
            settings=ProduceSettings(
                acks=acks,
                codec=self.codec,
                compression_level=compression_level,
                linger=linger_ms / 1000,
                max_request_size=max_request_size,
                max_in_flight=max_in_flight,
                max_in_flight_per_partition=max_in_flight if self.idempotent else 1,
            ),
            backlog=self._backlog,
            metrics=self._metrics,
            delivery_timeout=delivery_timeout_ms / 1000,
        )
        self._batch_size = min(batch_size, max_request_size)
        self._identity = Identity()
        self._undelivered: set[asyncio.Future[int | None]] = set()
        self._sticky = StickyPartitioner(client.random)
        self._closed = False
        self._reported = ExitStack()
        """Removes this producer's metrics."""

    # --- life ---

    async def start(self) -> Self:
        """Get a producer id (when idempotent). Call before the first `send`."""
        if self.idempotent and self._gate is None:
            self._identity = await self._director.new_identity()
        name = f"{self.client.client_id}-{self._lane}"
        self._reported.callback(
            self.client.metrics.add("kafka.producer", "producer-metrics", self._values, client_id=name)
        )
        self._director.start()
        return self

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Flush for at most `timeout_ms`, then stop; batches not acked by then fail with ConnectionClosed."""
        if self._closed:
            return
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self.flush()
        except TimeoutError:
            pass
        finally:
            self._closed = True
            self._reported.close()
            await self._director.close()
            self._backlog.abandon(ConnectionClosed("the producer was closed before the broker acknowledged"))
            await self.client.close_lane(self._lane)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # --- sending ---

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]:
        """Queue records of one partition in order; waits only for buffer space.

        The future is done when all of them are acked; its result is the first one's offset (None with
        acks=0, or when a retry found the batch already in the log and its offset forgotten). It fails with
        KafkaError (UNKNOWN_TOPIC_OR_PARTITION, INVALID_RECORD ...), RequestTimedOut or ConnectionClosed.
        A record larger than `max_request_size` raises KafkaError MESSAGE_TOO_LARGE here, and nothing is
        queued.
        """
        self._check_open()
        sizes = estimate_sizes(records)
        if sizes and (largest := max(sizes)) > self.max_request_size:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{topic}-{partition}: a record of {largest} bytes, "
                f"max_request_size is {self.max_request_size}",
            )
        queue = self._open_queue(TopicPartition(topic, partition))
        delivery = self._delivery()
        try:
            for start, end, size in self._slices(sizes):
                await self._reserve(size, queue)
                batch = queue.open_batch(self._now(), self._batch_size, size)
                whole = end - start == len(records)
                queue.put(batch, records if whole else records[start:end], size, delivery)
                self._queued(queue, batch)
        except asyncio.CancelledError:
            if self._gate is not None and delivery.is_queued:
                half = ConnectionClosed(f"{topic}-{partition}: a send was cancelled half way")
                self._gate.on_failure(self._gate.filling, half)
            raise
        finally:
            delivery.release()
        self._metrics.records_sent += len(records)
        return delivery.future

    async def send_batch(
        self, topic: str, partition: int, batch: bytes | memoryview
    ) -> asyncio.Future[int | None]:
        """Send a prebuilt batch, still compressed, restamped with this producer's id, epoch and sequence.

        Raises KafkaError INVALID_RECORD for batches that a broker refuses of a client: control batches, and
        batches with gaps (decode and `send` compacted ones). Raises MESSAGE_TOO_LARGE above
        `max_request_size`.
        """
        self._check_open()
        view = memoryview(batch)
        header = read_header(view)
        tp = TopicPartition(topic, partition)
        if header.size > self.max_request_size:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{tp}: a batch of {header.size} bytes, max_request_size is {self.max_request_size}",
            )
        if header.is_control or header.last_offset_delta + 1 != header.count or header.size > len(view):
            raise KafkaError(ErrorCode.INVALID_RECORD, f"{tp}: a control batch, or one with gaps, or cut off")
        queue = self._open_queue(tp)
        delivery = self._delivery()
        try:
            await self._reserve(header.size, queue)
            self._queued(queue, queue.put_raw(header, view[: header.size], self._now(), delivery))
        finally:
            delivery.release()
        self._metrics.records_sent += header.count
        return delivery.future

    @property
    def identity(self) -> Identity:
        """Producer id and epoch of partitions that do not `continue_at` others."""
        return self._identity

    def continue_at(self, tp: TopicPartition, identity: Identity, sequence: int) -> None:
        """Produce to `tp` as `identity`, the next record with this sequence number; end a halt.

        A broker does not append a batch again that an earlier producer sent under the same numbers (KIP-98),
        whether it was written or is still in flight. The batches have to be the same for that. Allowed only
        while the partition `is_idle`.
        """
        self._backlog.queue(tp, identity).continue_at(identity, sequence)

    def is_idle(self, tp: TopicPartition) -> bool:
        """Return True if no record of the partition waits or is in flight."""
        return tp not in self._backlog.busy

    def trouble(self, tp: TopicPartition) -> MillstreamError | None:
        """Return the error of the last attempt to send the partition's batches, which is retried.

        Return None if there was no attempt, no answer yet, or an acknowledgement since.
        """
        queue = self._backlog.queues.get(tp)
        return None if queue is None else queue.trouble

    def abandon(self, tp: TopicPartition) -> None:
        """Give up records that are not acknowledged; those in flight may still be written.

        Has an effect only with `halt_on_failure`.
        """
        if (queue := self._backlog.queues.get(tp)) is not None:
            queue.halt(ConnectionClosed(f"{tp}: given up before the broker acknowledged"))
            self._backlog.drop_halted(queue)

    async def flush(self) -> None:
        """Wait until all records sent so far are acked or have failed. Their futures have the failures."""
        self._backlog.seal()
        if self._undelivered:
            with self._metrics.timed(FLUSH):
                await asyncio.wait(self._undelivered)

    # --- for `TransactionalProducer` ---

    def cut(self) -> set[asyncio.Future[int | None]]:
        """Seal all open batches, so that later records join others; return the futures not done yet."""
        self._backlog.seal()
        return set(self._undelivered)

    def abandon_from(self, transaction: int, error: MillstreamError) -> None:
        """Give up all batches of this transaction and later ones; some may be in flight."""
        self._backlog.abandon_from(transaction, error)

    async def settle(self) -> None:
        """Wait until every batch that was sent is answered or its connection is lost."""
        await self._director.settle()

    @property
    def metrics(self) -> ProducerMetrics:
        """Counts and times of this producer."""
        return self._metrics

    def wake(self) -> None:
        """Send the batches that an opened gate admits."""
        self._director.wake()

    def partition_for(self, topic: str, key: bytes | None, partition_count: int) -> int:
        """Return the partition by murmur2 of the key; null keys stick to one partition per batch.

        This is Kafka's default partitioner.
        """
        if key is not None:
            return partition_for_key(key, partition_count)
        return self._sticky.partition(topic, partition_count)

    def partitioned(
        self, topic: str, records: Sequence[NewRecord], partition_count: int
    ) -> dict[int, list[NewRecord]]:
        """Return the records by `partition_for` their keys, in order."""
        return split_by_partition(
            records, partition_count, lambda: self._sticky.partition(topic, partition_count)
        )

    def statistics(self) -> dict[str, int]:
        """Return counts and gauges.

        buffered_bytes and its bound, waiting (calls of `send`, for room), in_flight_requests (the bound is
        per broker), records_sent, batches_sent, requests_sent, retries.
        """
        memory = self._backlog.memory
        return {
            "buffered_bytes": memory.used,
            "buffered_bytes_max": memory.limit,
            "waiting": memory.waiting,
            "in_flight_requests": self._director.in_flight,
            "records_sent": self._metrics.records_sent,
            "batches_sent": self._metrics.batches_sent,
            "requests_sent": self._metrics.requests_sent,
            "retries": self._metrics.retries,
        }

    def _values(self) -> Values:
        return self._metrics.values(self._backlog, in_flight=self._director.in_flight)

    # --- queueing ---

    def _open_queue(self, tp: TopicPartition) -> PartitionQueue:
        queue = self._backlog.queue(tp, self._identity)
        if queue.halted is not None:
            raise queue.halted
        return queue

    def _delivery(self) -> Delivery:
        future: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._undelivered.add(future)
        future.add_done_callback(self._undelivered.discard)
        if self._gate is not None:
            # The commit raises a failure, too.
            future.add_done_callback(retrieve_failure)
        return Delivery(future)

    def _queued(self, queue: PartitionQueue, batch: PendingBatch) -> None:
        if batch.sealed or len(queue.waiting) > 1:
            self._sticky.batch_full(*queue.tp)

    def _slices(self, sizes: list[int]) -> Iterator[tuple[int, int, int]]:
        """Yield slices of records of these sizes that fit into a batch each: (start, end, bytes)."""
        total = sum(sizes)
        if total <= self._batch_size:
            if sizes:
                yield 0, len(sizes), total
            return
        start, filled = 0, 0
        for end, size in enumerate(sizes):
            if filled and filled + size > self._batch_size:
                yield start, end, filled
                start, filled = end, 0
            filled += size
        yield start, len(sizes), filled

    async def _reserve(self, size: int, queue: PartitionQueue) -> None:
        """Wait for room in the buffer; meanwhile no batch lingers. Raises the error of a halt meanwhile."""
        if not self._backlog.memory.try_take(size):
            before = queue.halts, self._backlog.interrupts
            self._backlog.seal()
            await self._backlog.memory.take(size)
            if (queue.halts, self._backlog.interrupts) != before:
                self._backlog.memory.free(size)
                raise queue.halted or ConnectionClosed(f"{queue.tp}: given up while it waited for memory")

    def _check_open(self) -> None:
        if self._director.failure is not None:
            raise self._director.failure
        if self._closed:
            raise ConnectionClosed("the producer is closed")

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
