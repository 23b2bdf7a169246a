"""A coordinator partition of transactions at work: the core, its log, and the markers it still has to write.

Everything runs in the event loop. As in Apache Kafka, a transaction has ended for its producer once the
outcome is in the log. Markers are written in the loop's next turn, after the response, or before the next
request for that transactional id if that comes first. A task of the partition writes them if there are many,
or if the first attempt fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from kafka_client.backoff import Backoff
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.coordinators.coordinator_log import Loader
from logd.broker.transactions.log import TxnLog
from logd.broker.transactions.marker_outcome import Outcome
from logd.broker.transactions.marker_queues import MarkerDelayed
from logd.broker.transactions.markers import Markers
from logd.broker.work.periodic import report
from logd.transactions import (
    ProducerIdentity,
    TransactionDescription,
    TransactionRecord,
    TransactionSettings,
    TransactionShard,
    TransactionState,
)

if TYPE_CHECKING:
    from logd.storage import Appended

MARKERS_PER_TURN = 100
"""Markers of one transaction written before others have their turn."""
RETRY_FIRST_S = 0.1
RETRY_LAST_S = 10.0
"""How soon, and at the latest how late, markers that could not be written are tried again."""
RETRY_ELSEWHERE_LAST_S = 1.0
"""The latest for those that another broker has to write: another leader is found sooner than a disk mended.
"""

Flushes: TypeAlias = Sequence[tuple[TopicPartition, asyncio.Future[None]]]
"""Partitions whose marker is on its way, and what to await until it is committed."""

log = logging.getLogger("logd.broker")


class TxnPartition:
    """The core's shell; it may be used once `loaded`. `deposed` is called when another broker turns out to
    lead the partition.
    """

    def __init__(
        self,
        index: int,
        txn_log: TxnLog,
        settings: TransactionSettings,
        markers: Markers,
        *,
        new_producer_id: Callable[[], int],
        met_producer_id: Callable[[int], None],
        deposed: Callable[[TxnPartition], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.index = index
        self._shard = TransactionShard(index, txn_log, settings, new_producer_id)
        self._loader = Loader(txn_log.read, self._replay, is_empty=lambda: txn_log.is_empty)
        self._log = txn_log
        txn_log.on_deposed(lambda: deposed(self))
        self._markers = markers
        self._met_producer_id = met_producer_id
        self._now_ms = now_ms
        self._decided: dict[str, asyncio.Handle] = {}
        """Transactional ids whose markers are written in the loop's next turn."""
        self._finishing: dict[str, asyncio.Task[None]] = {}
        self._adding: dict[str, Appended] = {}
        """Appends that added partitions and may not be committed yet, by transactional id."""
        self._at_election = txn_log.last
        """Where the log ended that is loaded, until that is committed."""
        self._elsewhere: set[str] = set()
        """Transactional ids of which other brokers have not written a marker at the last attempt."""
        self._outstanding: set[asyncio.Future[None]] = set()
        """Markers that wait: for another broker, for a disk, for replicas."""

    def statistics(self) -> dict[str, int]:
        """Return the counts of transactional ids, and of those whose decided transaction is not finished."""
        return {
            "transactional_ids": len(self._shard),
            "finishing": len(self._decided.keys() | self._finishing.keys()),
        }

    # Life

    @property
    def loaded(self) -> bool:
        """True if the core is what the log says."""
        return self._loader.is_loaded

    async def load(self) -> None:
        """Replay the partition, in slices, and finish what was decided. KafkaError when it cannot be read."""
        count = await self._loader.load()
        if count is not None:
            log.info(
                "transactions of partition %d loaded: %d records, %d transactional ids, %d to be finished",
                self.index,
                count,
                len(self._shard),
                len(self._shard.undone),
            )
            await self._finish_undone()

    def _replay(self, stored: tuple[int, TransactionRecord]) -> None:
        offset, record = stored
        self._shard.load(record, offset)
        if record.transaction is not None:
            self._met_producer_id(record.transaction.highest_producer_id)

    async def _finish_undone(self) -> None:
        for transactional_id in self._shard.undone:
            if not self.loaded:
                return
            self._finish(transactional_id)
            await asyncio.sleep(0)

    def load_if_empty(self) -> bool:
        """Mark a partition without records as loaded. Return True if the partition is ready."""
        return self._loader.load_if_empty()

    def close(self) -> Iterable[asyncio.Task[None]]:
        """Stop coordinating; the next start, or leader, finishes what is not. Returns the cancelled tasks."""
        self._loader.close()
        self._log.close()
        for future in tuple(self._outstanding):
            future.cancel()
        for handle in self._decided.values():
            handle.cancel()
        self._decided.clear()
        tasks = tuple(self._finishing.values())
        for task in tasks:
            task.cancel()
        return tasks

    async def flushed(self) -> None:
        """Wait until all that was decided is committed. KafkaError: see `CoordinatorLog.flushed`."""
        flushing = self._log.flushed()
        if flushing is not None:
            await flushing

    # Producers

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> ProducerIdentity:
        """Answer InitProducerId. Raises CONCURRENT_TRANSACTIONS if a transaction was open, and aborts it."""
        self._finish_decided(transactional_id)
        try:
            return self._shard.init_producer(transactional_id, timeout_ms, expected, self._now_ms())
        finally:
            self._finish(transactional_id)

    def add_partitions(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Collection[TopicPartition],
        *,
        client_version: int,
    ) -> None:
        """Answer AddPartitionsToTxn."""
        self._finish_decided(transactional_id)
        before = self._log.last
        self._shard.add_partitions(
            transactional_id, identity, partitions, client_version=client_version, now_ms=self._now_ms()
        )
        added = self._log.last
        if added is not None and added is not before and not self._log.is_committed(added):
            self._adding[transactional_id] = added

    def added(self, transactional_id: str) -> Awaitable[None] | None:
        """Return an awaitable that ends when the id's partitions are durably added; mostly None."""
        appended = self._adding.get(transactional_id, self._at_election)
        if appended is None:
            return None
        flushing = self._log.flushed(appended)
        if flushing is None:
            self._adding.pop(transactional_id, None)
            if appended is self._at_election:
                self._at_election = None
        return flushing

    def end(
        self, transactional_id: str, identity: ProducerIdentity, *, commit: bool, client_version: int
    ) -> ProducerIdentity:
        """Answer EndTxn. The outcome is in the log on return; the markers follow."""
        self._finish_decided(transactional_id)
        after = self._shard.end(
            transactional_id, identity, commit=commit, client_version=client_version, now_ms=self._now_ms()
        )
        if transactional_id not in self._finishing and self._shard.is_decided(transactional_id):
            finish = asyncio.get_running_loop().call_soon(self._finish_decided, transactional_id)
            self._decided[transactional_id] = finish
        return after

    def flushing(self) -> Awaitable[None] | None:
        """Return an awaitable that ends when all decisions are committed; mostly None. It raises KafkaError
        as `flushed`.
        """
        return self._log.flushed()

    # Telling

    def verify_partitions(
        self, transactional_id: str, identity: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """See `TransactionShard.verify_partitions`."""
        self._finish_decided(transactional_id)
        return self._shard.verify_partitions(transactional_id, identity, partitions)

    def describe(self, transactional_id: str) -> TransactionDescription:
        """See `TransactionShard.describe`."""
        self._finish_decided(transactional_id)
        return self._shard.describe(transactional_id)

    def listed(self) -> Iterator[TransactionDescription]:
        """See `TransactionShard.listed`."""
        for transactional_id in tuple(self._decided):
            self._finish_decided(transactional_id)
        return self._shard.listed()

    # Housekeeping

    def timed_out(self) -> Sequence[str]:
        """See `TransactionShard.timed_out`."""
        return self._shard.timed_out(self._now_ms())

    def expired(self) -> Sequence[str]:
        """See `TransactionShard.expired`."""
        return self._shard.expired(self._now_ms())

    def forget(self, transactional_ids: Sequence[str]) -> None:
        """See `TransactionShard.forget`."""
        self._shard.forget(transactional_ids, self._now_ms())
        for transactional_id in transactional_ids:
            self._adding.pop(transactional_id, None)

    def abort_timed_out(self, transactional_id: str) -> None:
        """Abort a transaction that has timed out."""
        if self._shard.abort_timed_out(transactional_id, self._now_ms()):
            log.info(
                "transaction of %s aborted: it has timed out",
                transactional_id,
                extra={"transactional_id": transactional_id},
            )
            self._finish(transactional_id)

    # Markers

    def _finish_decided(self, transactional_id: str) -> None:
        """Finish the id's transaction now, if that was to happen in the loop's next turn."""
        handle = self._decided.pop(transactional_id, None)
        if handle is None:
            return
        handle.cancel()
        try:
            self._finish(transactional_id)
        except Exception as error:  # not to be raised: the producer was answered already
            report(f"finishing the transaction of {transactional_id}", error)
            self._keep_on(transactional_id, ())

    def _finish(self, transactional_id: str) -> None:
        """Write a decided transaction's outstanding markers: the first ones now, a task writes the rest.

        Nothing is written before the decision is committed.
        """
        owed = self._shard.owed(transactional_id)
        if owed is None or transactional_id in self._finishing:
            return
        waiting: Flushes = ()
        if self._log.is_committed():
            waiting = self._write_markers(transactional_id, owed[1][:MARKERS_PER_TURN])
            self._complete(transactional_id)
        self._keep_on(transactional_id, waiting)

    def _keep_on(self, transactional_id: str, waiting: Flushes) -> None:
        if self._shard.owed(transactional_id) is not None:
            task = asyncio.get_running_loop().create_task(self._go_on(transactional_id, waiting))
            self._finishing[transactional_id] = task

    async def _go_on(self, transactional_id: str, waiting: Flushes) -> None:
        """Write markers until the transaction is complete; nothing else writes them meanwhile."""
        backoff = Backoff(RETRY_FIRST_S, RETRY_LAST_S)
        try:
            await self._attempt(transactional_id, self._flush(transactional_id, waiting))
            while (owed := self._shard.owed(transactional_id)) is not None:
                await self._attempt(transactional_id, self._write_all(transactional_id, owed[1]))
                if self._shard.owed(transactional_id) is not None:
                    await asyncio.sleep(self._pause_s(transactional_id, backoff))
        finally:
            del self._finishing[transactional_id]
            self._elsewhere.discard(transactional_id)

    def _pause_s(self, transactional_id: str, backoff: Backoff) -> float:
        pause_s = backoff.next()
        if transactional_id not in self._elsewhere:
            return pause_s
        self._elsewhere.discard(transactional_id)
        return min(pause_s, RETRY_ELSEWHERE_LAST_S)

    async def _attempt(self, transactional_id: str, work: Awaitable[None]) -> None:
        """Report an error rather than raise it.

        A marker may be written twice, but one that is never written holds readers back for ever.
        """
        try:
            await work
        except Exception as error:
            report(f"finishing the transaction of {transactional_id}", error)

    async def _write_all(self, transactional_id: str, partitions: Sequence[TopicPartition]) -> None:
        try:
            await self.flushed()
        except KafkaError as error:
            log.warning(
                "the decision on %s is not on the disk yet: %s",
                transactional_id,
                error,
                extra={"transactional_id": transactional_id},
            )
            return
        for start in range(0, len(partitions), MARKERS_PER_TURN):
            some = partitions[start : start + MARKERS_PER_TURN]
            await self._flush(transactional_id, self._write_markers(transactional_id, some))
            await asyncio.sleep(0)
        self._complete(transactional_id)

    def _write_markers(self, transactional_id: str, partitions: Sequence[TopicPartition]) -> Flushes:
        """Write markers as far as that works; those that still have to get to the disk."""
        owed = self._shard.owed(transactional_id)
        assert owed is not None
        transaction = owed[0]
        outcome = Outcome(
            transaction.identity,
            transaction.state is TransactionState.PREPARE_COMMIT,
            self._log.leader_epoch,
            transaction.client_version,
            self._shard.number_of(transactional_id),
        )
        waiting = []
        for where in partitions:
            try:
                flushing = self._markers.write_where_needed(where, outcome)
            except MarkerDelayed:
                self._elsewhere.add(transactional_id)
                continue
            except KafkaError as error:
                log.warning(
                    "%s: no marker for %s yet: %s",
                    where,
                    transactional_id,
                    error,
                    extra={"transactional_id": transactional_id},
                )
                continue
            if flushing is None:
                self._shard.marker_written(transactional_id, where)
            else:
                waiting.append((where, self._noted(flushing)))
        return waiting

    def _noted(self, flushing: Awaitable[None]) -> asyncio.Future[None]:
        future = asyncio.ensure_future(flushing)
        self._outstanding.add(future)
        future.add_done_callback(self._settled)
        return future

    def _settled(self, marker: asyncio.Future[None]) -> None:
        self._outstanding.discard(marker)
        if not marker.cancelled():
            marker.exception()  # nobody hears of it once the coordinator has resigned

    async def _flush(self, transactional_id: str, waiting: Flushes) -> None:
        for where, flushing in waiting:
            try:
                await flushing
            except MarkerDelayed as error:  # told once for all that went the same way
                log.debug(
                    "%s: no marker for %s yet: %s",
                    where,
                    transactional_id,
                    error,
                    extra={"transactional_id": transactional_id},
                )
                self._elsewhere.add(transactional_id)
                continue
            except KafkaError as error:
                log.warning(
                    "%s: the marker for %s may be lost: %s",
                    where,
                    transactional_id,
                    error,
                    extra={"transactional_id": transactional_id},
                )
                continue
            self._shard.marker_written(transactional_id, where)

    def _complete(self, transactional_id: str) -> None:
        try:
            self._shard.complete(transactional_id, self._now_ms())
        except KafkaError as error:
            log.warning(
                "the end of the transaction of %s is not written yet: %s",
                transactional_id,
                error,
                extra={"transactional_id": transactional_id},
            )
