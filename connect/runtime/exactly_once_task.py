"""ExactlyOnceSourceTask: a source task whose records and source offsets are in one transaction (KIP-618).

    fence older tasks -> take over the transactional id -> is the task still ours? -> read offsets -> start
    poll -> send ... -> flush -> send offsets to the offset topic -> commit

A transaction ends after each poll, at an interval, or where the plugin says (`transaction.boundary`). What is
not committed when the task fails or is killed was never there for readers with `read_committed`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from connect.api.batch_source import BatchSourceTask
from connect.api.records import SourceBatch
from connect.api.source import SourceTask
from connect.config import SourceConfig
from connect.errors import ConnectError
from connect.runtime.client_settings import transactional_arguments
from connect.runtime.exactly_once_check import boundary
from connect.runtime.polled_parts import PolledParts
from connect.runtime.source_rows import Polled
from connect.runtime.source_sender import SourceSender
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.task import Stopping, TaskSetting
from connect.runtime.tolerance import Tolerance
from connect.runtime.transaction_requests import End, TransactionRequests
from connect.stores import OffsetStore
from kafka_client import TransactionalProducer
from kafka_client.errors import ErrorCode, KafkaError

_log = logging.getLogger(__name__)
_RECORDS_MAX = 1_000_000
"""Records after which a transaction of the boundary `interval` ends before its time."""
_CHECK_SECONDS_MIN = 0.01
_FENCING = frozenset(
    (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
)


class TaskFencing(Protocol):
    """The worker's part in keeping older tasks from writing."""

    def transactional_id(self, connector: str, task: int) -> str:
        """Return the transactional id of a task."""
        ...

    async def fence(self, connector: str) -> int | None:
        """Return the connector's generation of plans once no task of an older one can write.

        Raises ConnectError.
        """
        ...

    async def check(self, connector: str, task: int, generation: int | None) -> None:
        """Return if the task is still this worker's, by the newest configs. Raises ConnectError."""
        ...


class TransactionalOffsets(OffsetStore, Protocol):
    """A store of offsets that the task itself writes, in its transactions."""

    @property
    def primary_name(self) -> str:
        """The name of the topic that the transactions write to."""
        ...

    async def as_written(
        self, offsets: Mapping[bytes, bytes | None]
    ) -> Mapping[int, Sequence[tuple[bytes, bytes | None]]]:
        """Return the records that store these offsets, by the topic's partition."""
        ...

    async def note_committed(
        self,
        offsets: Mapping[bytes, bytes],
        parts: Mapping[int, Sequence[tuple[bytes, bytes | None]]],
        firsts: Mapping[int, int],
    ) -> None:
        """Take note of the offsets of a committed transaction: `get` returns them from now on.

        `parts`: what `as_written` returned. `firsts`: the offset of each part's first record, if it is known.
        """
        ...


class ExactlyOnceSourceTask(WorkerSourceTask):
    """A worker's task that runs a `SourceTask` with transactions."""

    def __init__(
        self,
        setting: TaskSetting,
        task: SourceTask | BatchSourceTask,
        store: TransactionalOffsets,
        fencing: TaskFencing,
        *,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(setting, task, store, on_change=on_change)
        source = SourceConfig.parse(setting.connector_config)
        self._boundary = boundary(source)
        interval_ms = source.transaction_boundary_interval_ms
        self._interval = (
            setting.worker.offset_flush_interval_ms if interval_ms is None else interval_ms
        ) / 1000
        self._topic = store
        self._fencing = fencing
        self._transactional_id = fencing.transactional_id(setting.connector, setting.task_id)
        self._transactions: TransactionalProducer
        self._requests = TransactionRequests()
        if self._boundary == "connector":
            self._context.transactions = self._requests
        self._is_open = False
        self._is_partial = False
        """True while a poll is only partly sent: its transaction cannot be committed."""
        self._opened_at = 0.0
        self._sent = 0
        """Records of the open transaction, as polled."""
        self._ended = 0
        """How many of the sender's acknowledgements are of transactions that have ended."""
        self._is_closing = False
        """True once an open transaction is given up: its sends fail, and that is no failure of the task."""
        self._ongoing: asyncio.Future[None] | None = None
        """A send or a commit that a stop waits for."""

    # --- start ---

    async def _prepare(self) -> None:
        setting = self.setting
        generation = await self._wait_for(self._fencing.fence(setting.connector))
        await self._wait_for(self._patiently(self._transactions.start))
        await self._wait_for(self._fencing.check(setting.connector, setting.task_id, generation))

    def _new_producer(self) -> TransactionalProducer:
        setting = self.setting
        arguments = transactional_arguments(
            setting.worker.raw, setting.connector_config, self._transactional_id
        )
        self._transactions = TransactionalProducer(setting.client, **arguments)
        return self._transactions

    def _new_sender(self, tolerance: Tolerance, *, is_followed: bool) -> SourceSender:
        sender = super()._new_sender(tolerance, is_followed=is_followed)
        sender.repairs = False  # a refused batch has failed the transaction
        sender.refused_topic = self._topic.primary_name
        return sender

    async def _start_producer(self) -> None:
        """Return at once: `_prepare` has started the producer."""

    # --- transactions ---

    def _prepared(self, polled: Sequence[Any] | None) -> Polled:
        """Return a poll in parts, split where the plugin has asked for ends; for the task's thread."""
        prepared = super()._prepared
        # Another type is refused where it is prepared. A poll may have left rows out, and have no others.
        if not isinstance(polled, (list, tuple, SourceBatch)) or not polled:
            return PolledParts.of([(prepared(polled), None)])
        return PolledParts.of([(prepared(part), end) for part, end in self._requests.split(polled)])

    async def _send(self, polled: Polled) -> None:
        await self._whole(self._hand_over(polled))

    async def _hand_over(self, polled: Polled) -> None:
        """Send a poll in the open transaction, and end that after the records for which the plugin asks."""
        assert isinstance(polled, PolledParts)
        async with self._committing:
            self._is_partial = True
            for part, end in polled.parts:
                self._begin()
                self._sent += part.count
                await super()._hand_over(part)
                if end is not None:
                    await self._end_transaction(end)
            self._is_partial = False

    def _begin(self) -> None:
        if not self._is_open:
            self._transactions.begin()
            self._is_open = True
            self._opened_at = time.monotonic()
            self._sent = 0

    async def _between_polls(self) -> None:
        if (end := self._due()) is not None:
            await self._whole(self._end_now(end))
        await super()._between_polls()

    def _due(self) -> End | None:
        """Return how the transaction is to end between two polls, or None if it goes on."""
        match self._boundary:
            case "poll":
                return End.COMMIT if self._is_open else None
            case "interval":
                late = time.monotonic() - self._opened_at >= self._interval or self._sent >= _RECORDS_MAX
                return End.COMMIT if self._is_open and late else None
        return self._requests.take_batch()

    async def _commit(self) -> None:
        """Commit offsets of skipped input, in a transaction of their own or the open one."""
        if self._boundary != "connector" or not self._is_open:
            await self._end_now(End.COMMIT)

    async def _end_now(self, end: End) -> None:
        async with self._committing:
            if not self._is_partial:
                await self._end_transaction(end)

    async def _end_transaction(self, end: End) -> None:
        """Commit the transaction with its offsets. After an abort the offsets have one of their own."""
        await self._flush_sent()
        if self._failure is not None:
            raise self._failure
        offsets = self._submitted.take_committable()
        if end is End.ABORT and self._is_open:
            _log.info("%s aborts its transaction, as its plugin asks", self.name)
            await self._transactions.abort()
            self._is_open = False
            self._forget_places()
        if not offsets and not self._is_open:
            return
        with self.metrics.committing():
            self._begin()
            parts = await self._topic.as_written(offsets)
            sent = {
                number: await self._transactions.send(
                    self._topic.primary_name, number, [(-1, key, value, ()) for key, value in part]
                )
                for number, part in parts.items()
            }
            await self._transactions.commit()
            self._is_open = False
            self.metrics.transactions.record(self._sent)
        firsts = {number: first for number, each in sent.items() if (first := each.result()) is not None}
        self._note_committed()
        await self._topic.note_committed(offsets, parts, firsts)
        self._commit_due = True

    def _note_committed(self) -> None:
        assert self._sender is not None
        self._ended = self._sender.acknowledgements

    def _forget_places(self) -> None:
        """Have the plugin told that the records of an aborted transaction are left out."""
        assert self._sender is not None
        self._sender.forget_places(self._ended)

    async def _commit_records(self) -> None:
        """Call `commit_record` or `commit_batch` for what transactions that have ended had (KIP-416)."""
        while self._ended:
            self._ended -= 1
            await self._commit_next_records()

    async def _commit_regularly(self) -> None:
        """Have skipped input noted now and then, and end a transaction at its interval while none polls."""
        flush = self.setting.worker.offset_flush_interval_ms / 1000
        seconds = (
            min(flush, max(self._interval, _CHECK_SECONDS_MIN)) if self._boundary == "interval" else flush
        )
        noted_at = time.monotonic()
        while True:
            await asyncio.sleep(seconds)
            try:
                if self._boundary == "interval" and (end := self._due()) is not None:
                    await self._end_now(end)
            except Exception as e:
                self._fail(e)
                return
            if time.monotonic() - noted_at >= flush:
                self._update_due, noted_at = True, time.monotonic()

    async def _pause_here(self) -> None:
        """End the transaction before a pause: it would time out meanwhile."""
        if not self._unpaused.is_set() and self._is_open and not self._ending.is_set():
            await self._whole(self._end_now(End.COMMIT))
        await super()._pause_here()

    # --- the end ---

    async def _whole(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for a send or a commit. If the task is to stop meanwhile, the work goes on until `_finish`."""
        self._ongoing = asyncio.ensure_future(work)
        self._ongoing.add_done_callback(_retrieve)
        await self._wait_for(asyncio.shield(self._ongoing))

    async def _finish(self) -> None:
        ended = self._context.is_finished and not self._ending.is_set()
        if ended:
            try:
                await self._whole(self._end_last())
            except Stopping:
                ended = False
        try:
            async with asyncio.timeout(self.setting.worker.offset_flush_timeout_ms / 1000):
                if self._ongoing is not None:
                    with suppress(Stopping):
                        await self._ongoing
                await self._end_last()
        except TimeoutError:
            _log.warning("%s: its last transaction is not committed in time", self.name)
            return
        if self._plugin_stop is None:
            await self._commit_records()
            if await self._note_updates():
                await self._commit()
        await self._tell_last_commit(ended=ended)

    async def _end_last(self) -> None:
        """End the open transaction; a plugin's own is committed only if the plugin has asked for that."""
        end = self._requests.take_batch() if self._boundary == "connector" else End.COMMIT
        if end is not None:
            await self._end_now(end)

    def _fail(self, error: BaseException) -> None:
        if not self._is_closing:
            super()._fail(error)

    async def _stop(self) -> None:
        self._is_closing = True
        if self._committer is not None:
            self._committer.cancel()
        if self._ongoing is not None and not self._ongoing.done():
            self._ongoing.cancel()
            await asyncio.wait([self._ongoing])
        if self._producer is not None:
            # An open transaction is aborted: readers would wait for its timeout.
            await self._producer.close(timeout_ms=self.setting.worker.offset_flush_timeout_ms)
        await super()._stop()

    def _explained(self, error: BaseException) -> BaseException:
        if not (isinstance(error, KafkaError) and error.code in _FENCING):
            return error
        explained = ConnectError(
            f"{self.name} can write nothing more as {self._transactional_id}: another instance of the task "
            "has started, or its transaction took longer than transaction.timeout.ms "
            f"(producer.override.transaction.timeout.ms). Nothing of that transaction is visible. {error}"
        )
        explained.__cause__ = error
        return explained


def _retrieve(future: asyncio.Future[None]) -> None:
    """Take note of a failure that nobody awaits, because the task has ended for another reason."""
    if not future.cancelled():
        future.exception()
