"""The transactional producer (KIP-98, KIP-360, KIP-447, KIP-890).

    begin ──send, send_offsets──▶ commit_soon ──▶ closing: flush, offsets, EndTxn ──▶ outcome
      ▲                               │
      └─────── the next begin ◀───────┘     its records wait in their queues for the outcome

At most one transaction is closing while the next one is filling: `commit_soon` waits for an earlier one.
Batches go through `BatchProducer`, whose gate this module opens; `transaction_coordinator` sends requests.

    failure      of the transaction that is filling           of the one that is closing
    abortable    every call but `abort` raises it             the same: the next one was built upon it and
                                                              fails, too; one `abort` ends both
    fatal        every call raises it, `abort` too
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from kafka_client.cluster.cluster import Client
from kafka_client.errors import (
    ConfigError,
    ConnectionClosed,
    FatalTransactionError,
    MillstreamError,
    TransactionError,
)
from kafka_client.producer.group_metadata import GroupMetadata
from kafka_client.producer.identity import Identity
from kafka_client.producer.producer import IN_FLIGHT_MAX, BatchProducer, CompressionType
from kafka_client.producer.producer_metrics import TXN_ABORT, TXN_INIT, TXN_SEND_OFFSETS
from kafka_client.producer.transaction import Transaction
from kafka_client.producer.transaction_coordinator import TransactionCoordinator
from kafka_client.producer.transaction_manager import Offsets, OffsetsLater, TransactionManager
from kafka_client.records import NewRecord
from kafka_client.topic_partition import TopicPartition


class TransactionalProducer:
    """A producer whose records and group offsets are committed together, or not at all.

        async with TransactionalProducer(client, "my-id") as producer:
            producer.begin()
            await producer.send("topic", 0, records)
            await producer.commit({TopicPartition("input", 0): 17}, consumer.group_metadata())

    `transactional_id`: the id of one producer at a time; a newer producer fences those before it.
    `transaction_timeout_ms`: how long a transaction may last before the coordinator aborts it. The other
    settings are `BatchProducer`'s. In transaction version 1 requests of their own add partitions and offsets
    to a transaction; in version 2 writing does. The cluster's finalized features give the version of each
    transaction.

    Errors say what to do: AbortableTransactionError (`abort`, then go on; TransactionRebalanced: and join the
    group again), ProducerFenced (stop), FatalTransactionError (close; a new producer of the same id
    recovers). A call that the state of the transaction does not allow raises RuntimeError.
    """

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        *,
        transaction_timeout_ms: int = 60_000,
        compression_type: CompressionType = "none",
        compression_level: int | None = None,
        linger_ms: float = 5,
        batch_size: int = 262_144,
        max_request_size: int = 1_048_576,
        buffer_memory: int = 33_554_432,
        delivery_timeout_ms: int = 120_000,
        max_in_flight: int = IN_FLIGHT_MAX,
    ) -> None:
        if not transactional_id:
            raise ConfigError("transactional_id", transactional_id, "not empty")
        self.client = client
        self.transactional_id = transactional_id
        coordinator = TransactionCoordinator(client, transactional_id, transaction_timeout_ms)
        self._transactions = TransactionManager(transactional_id, coordinator)
        self._batches = BatchProducer(
            client,
            compression_type=compression_type,
            compression_level=compression_level,
            linger_ms=linger_ms,
            batch_size=batch_size,
            max_request_size=max_request_size,
            buffer_memory=buffer_memory,
            delivery_timeout_ms=delivery_timeout_ms,
            max_in_flight=max_in_flight,
            gate=self._transactions.gate,
        )
        self._ending = asyncio.Lock()
        self._started = self._closed = False

    # --- life ---

    async def start(self, *, timeout_ms: int = 60_000) -> Self:
        """Take over the transactional id: fence earlier producers, and wait for their transaction's abort.

        Raises the last error as it is if retries fail for `timeout_ms`; `start` may be called again. Raises
        ProducerFenced or FatalTransactionError if the producer has to be given up.
        """
        if self._started:
            raise RuntimeError("the producer was started already")
        with self._batches.metrics.timed(TXN_INIT):
            await self._transactions.start(self._batches, timeout_ms=timeout_ms)
        await self._batches.start()
        self._started = True
        return self

    async def close(self, *, timeout_ms: int = 30_000) -> None:
        """Wait for a running commit and abort an open transaction, for at most `timeout_ms`; then stop."""
        if self._closed:
            return
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if self._transactions.closing is not None:
                    await asyncio.wait([self._transactions.closing.outcome])
                if self._transactions.open is not None or self._transactions.failure is not None:
                    await self.abort()
        except (TimeoutError, MillstreamError):
            pass
        finally:
            self._closed = True
            await self._transactions.close()
            await self._batches.close(timeout_ms=0)

    async def __aenter__(self) -> Self:
        try:
            return await self.start()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # --- a transaction ---

    def begin(self) -> None:
        """Begin a transaction; its records wait in their queues while the one before is closing."""
        self._check()
        if not self._started:
            raise RuntimeError("start() first")
        if self._transactions.open is not None:
            raise RuntimeError("a transaction is open: commit or abort it first")
        self._transactions.begin()

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]:
        """Send records in the transaction by `BatchProducer.send`; `commit` raises their failure, too."""
        transaction = self._filling()
        with transaction:
            self._transactions.take_in(transaction, TopicPartition(topic, partition))
            try:
                return await self._batches.send(topic, partition, records)
            except ConnectionClosed:  # given up while it waited for memory
                self._check()
                raise

    async def send_batch(
        self, topic: str, partition: int, batch: bytes | memoryview
    ) -> asyncio.Future[int | None]:
        """Send a batch as `BatchProducer.send_batch` does, in the transaction."""
        transaction = self._filling()
        with transaction:
            self._transactions.take_in(transaction, TopicPartition(topic, partition))
            try:
                return await self._batches.send_batch(topic, partition, batch)
            except ConnectionClosed:
                self._check()
                raise

    async def flush(self) -> None:
        """Send all queued records without lingering, and wait until they are acknowledged or have failed.

        This includes records of a transaction that waits for the one before.
        """
        await self._batches.flush()

    async def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Commit the group's offsets (next record to read) with the transaction.

        `group`: a member's `GroupMetadata`, which fences it by its generation (KIP-447), or a group's id
        alone. Waits for a transaction that is closing; give the offsets to `commit_soon` to avoid the wait.
        Raises TransactionRebalanced if the member's generation is over.
        """
        transaction = self._filling()
        with transaction:
            while self._transactions.closing is not None:
                await asyncio.wait([self._transactions.closing.outcome])
                self._check()
            try:
                with self._batches.metrics.timed(TXN_SEND_OFFSETS):
                    await self._transactions.send_offsets(transaction, offsets, group)
            except TransactionError as error:
                self._transactions.fail(transaction.number, error)
                raise

    async def commit(self, offsets: Offsets | None = None, group: GroupMetadata | str = "") -> None:
        """Commit as `commit_soon` does, and wait for the outcome.

        A commit is requested until it is answered. A caller that was cancelled may call again to wait for
        the same commit. Only if the producer is closed does the outcome stay unknown; the next producer with
        the transactional id then completes the transaction or aborts it.
        """
        if self._transactions.open is None and self._transactions.closing is not None and offsets is None:
            await asyncio.shield(self._transactions.closing.outcome)
            return
        await asyncio.shield(await self.commit_soon(offsets, group))

    async def commit_soon(
        self, offsets: Offsets | OffsetsLater | None = None, group: GroupMetadata | str = ""
    ) -> asyncio.Future[None]:
        """Begin to commit; the future is done when the transaction is committed. `begin` may follow at once.

        `offsets`, `group`: as for `send_offsets`. `offsets` may be a function, called once all records of
        the transaction are acknowledged, for offsets that depend on theirs.

        Waits for the previous commit, and for calls of `send` that wait for memory. If the commit fails, the
        future and every call raise the error. The next transaction, if it was begun, fails with it: `abort`
        ends both.
        """
        transaction = self._filling()
        if offsets and not group:
            raise ValueError("offsets are a group's: name it")
        transaction.ending = True
        try:
            await transaction.idle()
            if self._transactions.closing is not None:
                await asyncio.wait([self._transactions.closing.outcome])
            self._check()
        except BaseException:
            transaction.ending = False
            raise
        self._transactions.begin_commit(transaction, offsets or {}, group)
        return transaction.outcome

    async def abort(self) -> None:
        """Abort the transaction: give up records that are not acknowledged, and fail `send`s that wait.

        After an AbortableTransactionError the producer is ready for the next transaction. A closing
        transaction is waited for first; if its commit failed, both are aborted. The abort is requested until
        it is answered; if the call was cancelled, call it again. Raises ProducerFenced or
        FatalTransactionError.
        """
        async with self._ending:
            if self._transactions.closing is not None:
                await asyncio.wait([self._transactions.closing.outcome])
            if self._closed or isinstance(self._transactions.failure, FatalTransactionError):
                self._check()
            if self._transactions.open is None and self._transactions.failure is None:
                raise RuntimeError("no transaction is open")
            with self._batches.metrics.timed(TXN_ABORT):
                await self._transactions.abort()

    @property
    def identity(self) -> Identity:
        """Producer id and epoch of the open transaction, or of the last one."""
        return self._transactions.gate.identity

    @property
    def transaction_version(self) -> int:
        """2: partitions are added by writing (KIP-890); 1: by requests of their own."""
        return 2 if self._transactions.gate.implicit else 1

    def statistics(self) -> dict[str, int]:
        """Return `BatchProducer.statistics`, with transactions_committed and transactions_aborted."""
        return {
            **self._batches.statistics(),
            "transactions_committed": self._transactions.committed,
            "transactions_aborted": self._transactions.aborted,
        }

    def partition_for(self, topic: str, key: bytes | None, partition_count: int) -> int:
        """Return the partition by Kafka's default partitioner, as `BatchProducer.partition_for` does."""
        return self._batches.partition_for(topic, key, partition_count)

    def partitioned(
        self, topic: str, records: Sequence[NewRecord], partition_count: int
    ) -> dict[int, list[NewRecord]]:
        """Return the records by partition, as `BatchProducer.partitioned` does."""
        return self._batches.partitioned(topic, records, partition_count)

    # --- states ---

    def _check(self) -> None:
        if self._closed:
            raise ConnectionClosed("the producer is closed")
        self._transactions.check()

    def _filling(self) -> Transaction:
        self._check()
        if self._transactions.open is None or self._transactions.open.ending:
            raise RuntimeError("no transaction is open: begin() first")
        return self._transactions.open
