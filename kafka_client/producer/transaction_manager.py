"""The transactions of one producer: which is open, closing or failed, and the steps to its end.

`transactional` decides which call is allowed when. This module adds partitions, commits, aborts, and handles
failures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.errors import (
    AbortableTransactionError,
    ConnectionClosed,
    ErrorCode,
    FatalTransactionError,
    MillstreamError,
    TransactionError,
)
from kafka_client.producer.gate import TransactionGate
from kafka_client.producer.group_metadata import GroupMetadata
from kafka_client.producer.producer import BatchProducer
from kafka_client.producer.producer_metrics import TXN_COMMIT
from kafka_client.producer.transaction import Transaction
from kafka_client.producer.transaction_answers import PRODUCE
from kafka_client.producer.transaction_coordinator import IMPLICIT_FROM, TransactionCoordinator
from kafka_client.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]
OffsetsLater = Callable[[], Offsets]
"""A function for offsets that depend on those of the transaction's records; called when all are acked."""


class TransactionManager:
    """A producer's transactions: `open` takes records, `closing` is committing, `broken` failed to commit.

    `failure` is the error of the transaction that failed first, and of all later ones.
    """

    def __init__(self, transactional_id: str, coordinator: TransactionCoordinator) -> None:
        self.gate = TransactionGate(transactional_id, self._batch_failed)
        self.open: Transaction | None = None
        self.closing: Transaction | None = None
        self.broken: Transaction | None = None
        self.failure: TransactionError | None = None
        self.committed = self.aborted = 0
        self._batches: BatchProducer
        self._coordinator = coordinator
        self._numbers = 0
        self._failed_from = 0
        """The number of the transaction that failed first."""
        self._to_add = asyncio.Event()
        self._adding = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, batches: BatchProducer, *, timeout_ms: int) -> None:
        """Take over the transactional id, and begin to add partitions."""
        self._batches = batches
        self.gate.identity = await self._coordinator.initialise(None, timeout_ms=timeout_ms)
        self.gate.implicit = await self._coordinator.version(timeout_ms=timeout_ms) >= IMPLICIT_FROM
        self._spawn(self._add_forever(), "transaction-partitions")

    async def close(self) -> None:
        """Cancel all tasks, and close the connections to the coordinator."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._coordinator.close()

    def check(self) -> None:
        """Raise the failure, if there is one."""
        if self.failure is not None:
            # A new exception each time: a raised one keeps the frames it went through.
            raise type(self.failure)(self.failure.code, self.failure.message) from self.failure

    # --- filling ---

    def begin(self) -> None:
        """Begin the next transaction."""
        self._numbers += 1
        self.open = Transaction(self._numbers)
        self.gate.filling = self.open.number
        if self.closing is None:
            self.gate.open(self.open.number)

    def take_in(self, transaction: Transaction, tp: TopicPartition) -> None:
        """Add the partition to the transaction, before a record for it is sent."""
        if tp not in transaction.partitions:
            transaction.partitions.add(tp)
            transaction.to_add.append(tp)
            self._to_add.set()

    async def _add_forever(self) -> None:
        """Send AddPartitionsToTxn for new partitions, one request for all that came meanwhile."""
        while True:
            await self._to_add.wait()
            self._to_add.clear()
            async with self._adding:
                transaction = self._sending()
                if transaction is not None and transaction.to_add and not self.gate.implicit:
                    await self._add_partitions(transaction)

    async def _add_partitions(self, transaction: Transaction) -> None:
        added, transaction.to_add = transaction.to_add, []
        transaction.is_announced = True
        try:
            await self._coordinator.add_partitions(
                self.gate.identity, added, is_wanted=lambda: self._may_go_on(transaction)
            )
        except TransactionError as error:
            self.fail(transaction.number, error)
        else:
            transaction.is_confirmed = True
            self.gate.add(set(added))
            self._batches.wake()

    def _sending(self) -> Transaction | None:
        """Return the transaction whose records may be sent, or None."""
        transaction = self.closing or self.open
        return transaction if transaction is not None and self._may_go_on(transaction) else None

    def _may_go_on(self, transaction: Transaction) -> bool:
        return self.failure is None or transaction.number < self._failed_from

    async def send_offsets(
        self, transaction: Transaction, offsets: Offsets, group: GroupMetadata | str
    ) -> None:
        """Bring a group's offsets into the transaction whose records may be sent."""
        if not offsets:
            return
        who = GroupMetadata(group_id=group) if isinstance(group, str) else group
        identity, implicit = self.gate.identity, self.gate.implicit

        def is_wanted() -> bool:
            return self._may_go_on(transaction)

        transaction.is_announced = True
        if not implicit:
            await self._coordinator.add_offsets(identity, who.group_id, is_wanted=is_wanted)
            transaction.is_confirmed = True
        await self._coordinator.commit_offsets(identity, offsets, who, implicit=implicit, is_wanted=is_wanted)
        transaction.is_confirmed = True

    # --- ending ---

    def begin_commit(
        self, transaction: Transaction, offsets: Offsets | OffsetsLater, group: GroupMetadata | str
    ) -> None:
        """Commit the open transaction, which takes no more records; its `outcome` has the result."""
        delivered = self._batches.cut()
        self.open, self.closing = None, transaction
        commit = self._commit(transaction, delivered, offsets, group)
        self._spawn(self._timed(commit), "transaction-commit")

    async def _timed(self, commit: Coroutine[Any, Any, None]) -> None:
        with self._batches.metrics.timed(TXN_COMMIT):
            await commit

    async def _commit(
        self,
        transaction: Transaction,
        delivered: set[asyncio.Future[int | None]],
        offsets: Offsets | OffsetsLater,
        group: GroupMetadata | str,
    ) -> None:
        try:
            if not callable(offsets):
                await self.send_offsets(transaction, offsets, group)
            if delivered:
                await asyncio.wait(delivered)
            if not self._may_go_on(transaction):
                self.check()
            if callable(offsets):
                await self.send_offsets(transaction, offsets(), group)
            await self._end(transaction, commit=True)
        except asyncio.CancelledError:
            self._commit_failed(transaction, ConnectionClosed("the producer was closed before the answer"))
            raise
        except Exception as error:
            self._commit_failed(transaction, error)
            if not isinstance(error, MillstreamError):
                raise
        else:
            self.committed += 1
            try:
                await self._go_on_after(transaction)
            finally:
                transaction.outcome.set_result(None)

    def _commit_failed(self, transaction: Transaction, error: Exception) -> None:
        failure = error
        if not isinstance(failure, TransactionError):
            failure = FatalTransactionError(ErrorCode.UNKNOWN_SERVER_ERROR, f"commit: {error!r}")
        self.closing, self.broken = None, transaction
        self.fail(transaction.number, failure)
        if not transaction.outcome.done():
            transaction.outcome.set_exception(failure)

    async def _go_on_after(self, transaction: Transaction) -> None:
        """Send the records of the next transaction, if it has begun, after this one was committed."""
        try:
            await self._renew_identity(bump=False)
        except TransactionError as error:
            self.fail(transaction.number + 1, error)
        self.closing = None
        if self.open is not None and self._may_go_on(self.open):
            self.gate.open(self.open.number)
            self._to_add.set()
            self._batches.wake()

    async def abort(self) -> None:
        """Abort the transaction that failed or is open, and any later one; then the next may begin."""
        transaction = self.broken or self.open or Transaction(self._numbers)
        unclear = self.failure is not None or bool(self._batches.cut())
        if self.failure is None:
            reason = "the transaction was aborted"
            self.fail(transaction.number, AbortableTransactionError(ErrorCode.TRANSACTION_ABORTABLE, reason))
        self._abandon()
        await self._batches.settle()
        if self.open is not None:
            await self.open.idle()
        try:
            await self._end(transaction, commit=False)
            await self._renew_identity(bump=transaction.lost or (unclear and not self.gate.implicit))
        except TransactionError as error:
            self.fail(transaction.number, error)
            raise
        self.aborted += 1
        self.failure = self.open = self.broken = None
        self.gate.shut()

    async def _end(self, transaction: Transaction, *, commit: bool) -> None:
        """Send EndTxn, if the coordinator may know the transaction."""
        async with self._adding:
            transaction.to_add.clear()
            is_announced = transaction.is_announced or self.gate.last_sent == transaction.number
            if is_announced and not transaction.ended:
                try:
                    self.gate.identity = await self._coordinator.end(
                        self.gate.identity, commit=commit, implicit=self.gate.implicit
                    )
                except TransactionError as error:
                    if commit or not self._nothing_to_abort(transaction, error):
                        raise
            transaction.ended = True

    def _nothing_to_abort(self, transaction: Transaction, error: TransactionError) -> bool:
        """Return True if the coordinator's error says that there is no such transaction."""
        if error.code is ErrorCode.UNKNOWN_PRODUCER_ID:
            transaction.lost = True
            return True
        # The request that would have begun the transaction was refused, or never arrived.
        return error.code is ErrorCode.INVALID_TXN_STATE and not (
            transaction.is_confirmed or self.gate.implicit
        )

    async def _renew_identity(self, *, bump: bool) -> None:
        """Look up the version of the next transaction, and get a new epoch if it needs one.

        With version 1 an abort needs a new epoch if it is not known which batches were written (KIP-360).
        Version 2 gives each transaction an epoch. At the change from 1 to 2 a new epoch keeps late batches
        out of the next transaction.
        """
        implicit = await self._coordinator.version() >= IMPLICIT_FROM
        if bump or (implicit and not self.gate.implicit):
            self.gate.identity = await self._coordinator.initialise(self.gate.identity)
        self.gate.implicit = implicit

    # --- failing ---

    def _batch_failed(self, number: int, error: MillstreamError) -> None:
        self.fail(number, PRODUCE.verdict(error))

    def fail(self, number: int, error: TransactionError) -> None:
        """Fail this transaction and all later ones: they cannot be committed, and no more of them is sent."""
        if isinstance(self.failure, FatalTransactionError):
            return
        if isinstance(error, FatalTransactionError):
            number = 0
        elif self.failure is not None and number >= self._failed_from:
            return
        self.failure, self._failed_from = error, number
        if self.gate.sending >= number:
            self.gate.shut()
        # Not at once: the caller may be a queue that is working on its batches.
        asyncio.get_running_loop().call_soon(self._abandon)

    def _abandon(self) -> None:
        if self.failure is not None:
            self._batches.abandon_from(self._failed_from, self.failure)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(0, FatalTransactionError(ErrorCode.UNKNOWN_SERVER_ERROR, f"a bug: {error!r}"))
