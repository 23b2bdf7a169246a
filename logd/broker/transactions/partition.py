"""One coordinator partition of transactions at work: the core, its log, and the markers it owes.

Everything runs in the event loop. A transaction whose outcome is in the log is completed at once where that
is a matter of a few markers; what takes longer, or does not work for now, a task of the partition's goes on
with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from logd.broker.transactions.log import TxnLog
from logd.broker.transactions.markers import Markers
from logd.errors import KafkaError
from logd.transactions import (
    ProducerIdentity,
    TopicPartition,
    TransactionSettings,
    TransactionShard,
    TransactionState,
)

if TYPE_CHECKING:
    from logd.storage import Appended

LOADING_SLICE_S = 0.005
"""How long recovery holds the event loop before others have their turn."""
MARKERS_PER_TURN = 100
"""Markers of one transaction written before others have their turn."""
RETRY_FIRST_S = 0.1
RETRY_LAST_S = 10.0
"""How soon, and at the latest how late, markers that could not be written are tried again."""

Flushes: TypeAlias = Sequence[tuple[TopicPartition, Awaitable[None]]]
"""Partitions whose marker is written, and what to await until it is on the disk."""

log = logging.getLogger("logd.broker")


class TxnPartition:
    """`shard` is the core; it may be used once `loaded`."""

    def __init__(
        self,
        index: int,
        txn_log: TxnLog,
        settings: TransactionSettings,
        markers: Markers,
        *,
        new_producer_id: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self.index = index
        self.shard = TransactionShard(index, txn_log, settings, new_producer_id)
        self.loaded = False
        self._log = txn_log
        self._markers = markers
        self._now_ms = now_ms
        self._closed = False
        self._finishing: dict[str, asyncio.Task[None]] = {}
        self._adding: dict[str, Appended] = {}
        """What brought partitions into transactions and may not be on the disk yet, by transactional id."""

    # Life

    async def load(self) -> None:
        """Replay the partition, in slices, and finish what was decided. KafkaError when it cannot be read."""
        count = 0
        loop = asyncio.get_running_loop()
        until = loop.time() + LOADING_SLICE_S
        for record in self._log.read():
            self.shard.load(record)
            count += 1
            if loop.time() >= until:
                await asyncio.sleep(0)
                if self._closed:
                    return
                until = loop.time() + LOADING_SLICE_S
        self.loaded = True
        log.info(
            "transactions of partition %d loaded: %d records, %d transactional ids, %d to be finished",
            self.index,
            count,
            len(self.shard),
            len(self.shard.undone),
        )
        await self._finish_undone()

    async def _finish_undone(self) -> None:
        for transactional_id in self.shard.undone:
            if self._closed:
                return
            self._finish(transactional_id)
            await asyncio.sleep(0)

    def load_if_empty(self) -> bool:
        """A partition without records is ready at once; whether it is ready."""
        if not self.loaded and not self._closed and self._log.is_empty:
            self.loaded = True
        return self.loaded

    def close(self) -> Iterable[asyncio.Task[None]]:
        """Stop coordinating; what is not finished the next start finishes. The tasks that end with it."""
        self.loaded, self._closed = False, True
        tasks = tuple(self._finishing.values())
        for task in tasks:
            task.cancel()
        return tasks

    async def flushed(self) -> None:
        """Wait until all that was decided is on the disk, by flush.messages. KafkaError if the disk fails."""
        flushing = self._log.flushed()
        if flushing is not None:
            await flushing

    # Producers

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> ProducerIdentity:
        """InitProducerId; CONCURRENT_TRANSACTIONS where a transaction was open, which is aborted then."""
        try:
            return self.shard.init_producer(transactional_id, timeout_ms, expected, self._now_ms())
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
        """AddPartitionsToTxn."""
        before = self._log.last
        self.shard.add_partitions(
            transactional_id, identity, partitions, client_version=client_version, now_ms=self._now_ms()
        )
        added = self._log.last
        if added is not None and added is not before and self._log.flushed(added) is not None:
            self._adding[transactional_id] = added

    def added(self, transactional_id: str) -> Awaitable[None] | None:
        """What to await until the id's partitions are in its transaction for good; mostly nothing."""
        appended = self._adding.get(transactional_id)
        if appended is None:
            return None
        flushing = self._log.flushed(appended)
        if flushing is None:
            del self._adding[transactional_id]
        return flushing

    def end(
        self, transactional_id: str, identity: ProducerIdentity, *, commit: bool, client_version: int
    ) -> ProducerIdentity:
        """EndTxn. The outcome is in the log on return; markers that are missing still follow."""
        after = self.shard.end(
            transactional_id, identity, commit=commit, client_version=client_version, now_ms=self._now_ms()
        )
        self._finish(transactional_id)
        return after

    def abort_timed_out(self, transactional_id: str) -> None:
        """Abort a transaction nobody ends."""
        if self.shard.abort_timed_out(transactional_id, self._now_ms()):
            log.info("transaction of %s aborted: it has timed out", transactional_id)
            self._finish(transactional_id)

    # Markers

    def _finish(self, transactional_id: str) -> None:
        """Write the markers a decided transaction owes: the first ones now, a task goes on with the rest.

        Nothing is written before the decision is where flush.messages wants it.
        """
        owed = self.shard.owed(transactional_id)
        if owed is None or transactional_id in self._finishing:
            return
        waiting: Flushes = ()
        if self._log.flushed() is None:
            waiting = self._write_markers(transactional_id, owed[1][:MARKERS_PER_TURN])
            self._complete(transactional_id)
        if self.shard.owed(transactional_id) is not None:
            task = asyncio.get_running_loop().create_task(self._go_on(transactional_id, waiting))
            self._finishing[transactional_id] = task

    async def _go_on(self, transactional_id: str, waiting: Flushes) -> None:
        """Until the transaction is complete; nobody else writes markers for it meanwhile."""
        delay_s = RETRY_FIRST_S
        try:
            await self._flush(transactional_id, waiting)
            while (owed := self.shard.owed(transactional_id)) is not None:
                await self._write_all(transactional_id, owed[1])
                if self.shard.owed(transactional_id) is not None:
                    await asyncio.sleep(delay_s)
                    delay_s = min(delay_s * 2, RETRY_LAST_S)
        finally:
            del self._finishing[transactional_id]

    async def _write_all(self, transactional_id: str, partitions: Sequence[TopicPartition]) -> None:
        try:
            await self.flushed()
        except KafkaError as error:
            log.warning("the decision on %s is not on the disk yet: %s", transactional_id, error)
            return
        for start in range(0, len(partitions), MARKERS_PER_TURN):
            some = partitions[start : start + MARKERS_PER_TURN]
            await self._flush(transactional_id, self._write_markers(transactional_id, some))
            await asyncio.sleep(0)
        self._complete(transactional_id)

    def _write_markers(self, transactional_id: str, partitions: Sequence[TopicPartition]) -> Flushes:
        """Write markers as far as that works; those that still have to get to the disk."""
        owed = self.shard.owed(transactional_id)
        assert owed is not None
        transaction = owed[0]
        commit = transaction.state is TransactionState.PREPARE_COMMIT
        waiting = []
        for where in partitions:
            try:
                flushing = self._markers.settle(
                    where,
                    transaction.identity,
                    commit=commit,
                    coordinator_epoch=self._log.leader_epoch,
                    transaction_version=transaction.client_version,
                )
            except KafkaError as error:
                log.warning("%s-%d: no marker for %s yet: %s", *where, transactional_id, error)
                continue
            if flushing is None:
                self.shard.marker_written(transactional_id, where)
            else:
                waiting.append((where, flushing))
        return waiting

    async def _flush(self, transactional_id: str, waiting: Flushes) -> None:
        for where, flushing in waiting:
            try:
                await flushing
            except KafkaError as error:
                log.warning("%s-%d: the marker for %s may be lost: %s", *where, transactional_id, error)
                continue
            self.shard.marker_written(transactional_id, where)

    def _complete(self, transactional_id: str) -> None:
        try:
            self.shard.complete(transactional_id, self._now_ms())
        except KafkaError as error:
            log.warning("the end of the transaction of %s is not written yet: %s", transactional_id, error)
