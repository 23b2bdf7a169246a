"""A running source task: polls, converts, sends, and commits source offsets of acknowledged records.

One coroutine polls and sends, another commits every `offset.flush.interval.ms`. Plugin methods are called one
at a time, so `commit()` is called between polls. Only `stop()` may be called while a `poll` blocks, to
interrupt it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from connect.api.batch_source import BatchSourceTask
from connect.api.records import SourceRecord
from connect.api.source import SourceTask, SourceTaskContext
from connect.config import SourceConfig
from connect.errors import RetriableError
from connect.runtime.batch_offsets import last_offsets
from connect.runtime.client_settings import producer_arguments
from connect.runtime.conversion import Conversion
from connect.runtime.errors.failed_row import failed_source_row
from connect.runtime.errors.row_by_row import RowByRow
from connect.runtime.plugin_statistics import PluginStatistics
from connect.runtime.source_rows import Polled, SourceRows
from connect.runtime.source_sender import SourceSender
from connect.runtime.submitted import SubmittedOffsets
from connect.runtime.task import Stopping, TaskSetting, WorkerTask, new_backoff
from connect.runtime.task_metrics import SourceMetrics
from connect.runtime.tolerance import Tolerance
from connect.runtime.topic_creation import TopicCreation, creation_rules
from connect.stores import ConnectorOffsets, OffsetStore
from connect.transforms.chain import TransformChain
from kafka_client import Backoff, BatchProducer, RecordMetadata, TransactionalProducer
from kafka_client.errors import BROKER_AWAY
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)

_Document = Mapping[str, Any]
_IDLE_MIN_SECONDS = 0.005
_IDLE_MAX_SECONDS = 0.2
_MOMENT_SECONDS = 0.1
"""How long a stop waits for a plugin's call to return before it calls `stop` concurrently."""


class WorkerSourceTask(WorkerTask):
    """A worker's task that runs a `SourceTask`."""

    _SENDER: ClassVar[type[SourceSender]] = SourceSender
    _CALLS_HAVE_FLUSH_TIME: ClassVar[bool] = True

    def __init__(
        self,
        setting: TaskSetting,
        task: SourceTask | BatchSourceTask,
        store: OffsetStore,
        *,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(setting, on_change=on_change)
        self._task = task
        self._plugin_statistics = PluginStatistics(self.name, task)
        self._store = store
        self._offsets = ConnectorOffsets(store, setting.connector)
        self._context = SourceTaskContext(
            connector=setting.connector, task_id=setting.task_id, offsets=self._offsets
        )
        self._submitted = SubmittedOffsets()
        self._committing = asyncio.Lock()
        self._committer: asyncio.Task[None] | None = None
        self._commit_due = False
        self._update_due = False
        self._plugin_stop: asyncio.Future[None] | None = None
        self._producer: BatchProducer | TransactionalProducer | None = None
        self._sender: SourceSender | None = None
        self._tolerance: Tolerance | None = None
        self._transforms: TransformChain | None = None
        self.metrics: SourceMetrics = SourceMetrics()

    def statistics(self) -> dict[str, Any]:
        """Return the counts of records polled from the source and acknowledged by the log."""
        return {"records_polled": self.polled, "records_acked": self.acked}

    def plugin_values(self) -> Values:
        """Return the statistics of the plugin's task."""
        return self._plugin_statistics.read()

    def queued(self) -> Values:
        """Return the counts of offsets that are not committed and sends that are not acknowledged."""
        return {
            **self._submitted.statistics(),
            "unanswered_sends": self._sender.unanswered if self._sender else 0,
        }

    @property
    def polled(self) -> int:
        """Records that the plugin's `poll` has returned."""
        return self.metrics.polled

    @property
    def acked(self) -> int:
        """Polled records that the log has acknowledged."""
        return self.metrics.acked

    def values(self) -> Mapping[str, Values]:
        """Return the task's metrics, by type."""
        return {**super().values(), "source-task-metrics": self.metrics.values()}

    async def _start(self) -> None:
        setting = self.setting
        is_followed: bool = await self._wait_for(self._calls.call(self._prepare_rows))
        self._producer = self._new_producer()
        source = SourceConfig.parse(setting.connector_config)
        dead_letters = await self._dead_letters(source)
        self._tolerance = Tolerance(self.name, source, self.metrics, dead_letters, self._fail)
        self._sender = self._new_sender(self._tolerance, is_followed=is_followed)
        await self._prepare()
        self._task.context = self._context
        # Another worker may have run this task until a moment ago: without its offsets records come twice.
        await self._wait_for(self._patiently(self._store.refresh))
        await self._wait_for(self._calls.call(self._task.start, setting.config))
        await self._start_producer()
        self._committer = asyncio.create_task(self._commit_regularly())

    async def _prepare(self) -> None:
        """Do what comes before the source's offsets are read."""

    def _prepare_rows(self) -> bool:
        """Create converters and transforms. Return True if single records are followed."""
        setting = self.setting
        conversion = Conversion.configured(setting.worker, setting.connector_config)
        self._transforms = TransformChain.configured(setting.connector_config)
        is_followed = getattr(type(self._task), "commit_record", None) is not SourceTask.commit_record
        self._rows = SourceRows(
            conversion, self._transforms, is_followed=is_followed, reported=self._context.reported
        )
        return is_followed

    def _new_producer(self) -> BatchProducer | TransactionalProducer:
        arguments = producer_arguments(self.setting.worker.raw, self.setting.connector_config)
        return BatchProducer(self.setting.client, **arguments)

    async def _start_producer(self) -> None:
        assert self._producer is not None
        await self._patiently(self._producer.start)

    def _new_sender(self, tolerance: Tolerance, *, is_followed: bool) -> SourceSender:
        setting = self.setting
        assert self._producer is not None
        rules = creation_rules(setting.connector_config) if setting.worker.topic_creation_enable else []
        return self._SENDER(
            self._producer,
            TopicCreation(setting.client, setting.admin, rules),
            tolerance,
            self.metrics,
            patiently=self._patiently,
            note_topic=self._note_topic,
            on_failure=self._fail,
            is_followed=is_followed,
        )

    async def _work(self) -> None:
        idle = Backoff(_IDLE_MIN_SECONDS, _IDLE_MAX_SECONDS)
        backoff = new_backoff()
        while True:
            await self._pause_here()
            await self._keep_rate(self._while_throttled)
            started_at = time.monotonic()
            try:
                polled = await self._poll()
            except RetriableError as e:
                self.metrics.failed(again=True)
                seconds = backoff.next()
                _log.warning("%s: polling failed, again in %.1f s: %s", self.name, seconds, e)
                await self._rest(seconds)
                continue
            backoff.reset()
            if polled:
                idle.reset()
                self.metrics.record_poll(polled.count, polled.polled_at - started_at)
                await self._send(polled)
                self.rate.take(polled.count, polled.sizes())
            await self._between_polls()
            if self._context.is_finished:
                return
            if not polled:
                await self._rest(idle.next())

    async def _poll(self) -> Polled:
        """Call the plugin's `poll`, and prepare what it returns in the same job of the task's thread.

        Raises Stopping if the task is to stop, after sending records of that poll.
        """
        polling = asyncio.ensure_future(self._call_poll())
        try:
            return await self._wait_for(asyncio.shield(polling))
        except Stopping:
            polled = await self._interrupt(polling)
            if polled and self._failure is None:
                await self._send_last(polled)
            raise

    async def _call_poll(self) -> Polled:
        poll: Callable[[], Any] = self._task.poll
        return await self._calls.call_then(poll, self._prepared)

    def _prepared(self, polled: Sequence[Any] | None) -> Polled:
        """Return what `poll` has returned, prepared for the producer; for the task's thread."""
        return self._rows.prepared(polled)

    async def _interrupt(self, polling: asyncio.Future[Polled]) -> Polled | None:
        """Interrupt a `poll`: cancel an async one, or call the plugin's `stop` if a plain one does not return
        soon.

        Return the poll's records, if any. A poll that does not end is abandoned while there is time to
        commit.
        """
        if not self._calls.is_busy:
            polling.cancel()
        grace = self.setting.worker.task_shutdown_graceful_timeout_ms / 1000
        await asyncio.wait({polling}, timeout=min(_MOMENT_SECONDS, grace / 2))
        if not polling.done():
            self._stop_plugin()
            await asyncio.wait({polling}, timeout=grace)
        if not polling.done():
            _log.warning("%s: poll does not end", self.name)
            polling.cancel()
            return None
        if polling.cancelled() or (error := polling.exception()) is None:
            return None if polling.cancelled() else polling.result()
        _log.info("%s: poll ended by %r", self.name, error)
        return None

    async def _send_last(self, polled: Polled) -> None:
        """Send the records for at most `offset.flush.timeout.ms`; the rest is read again after a restart."""
        self.metrics.record_poll(polled.count)
        try:
            async with asyncio.timeout(self.setting.worker.offset_flush_timeout_ms / 1000):
                await self._hand_over(polled)
        except (TimeoutError, *BROKER_AWAY) as e:
            _log.warning("%s: its last records are not sent: %r", self.name, e)

    async def _while_throttled(self) -> None:
        await self._pause_here()
        await self._between_polls()

    async def _between_polls(self) -> None:
        """Call the plugin's `commit_record`, `update_offsets` and `commit` where they are due, one by one."""
        await self._wait_for(self._commit_records())
        if self._update_due:
            self._update_due = False
            if await self._wait_for(self._note_updates()):
                await self._commit()
        if self._commit_due:
            self._commit_due = False
            await self._wait_for(self._calls.call(self._task.commit))

    async def _note_updates(self) -> bool:
        """Call the plugin's `update_offsets` (KIP-910). Return True if it returned any offsets."""
        offsets: Iterable[tuple[_Document, _Document]] | None = await self._calls.call(
            self._task.update_offsets
        )
        updates = list(offsets or ())
        self._submitted.update({self._offsets.key(p): self._offsets.encode(offset) for p, offset in updates})
        return bool(updates)

    async def _commit_records(self) -> None:
        """Call the plugin's `commit_record` for all polls acknowledged so far (KIP-416)."""
        assert self._sender is not None
        while self._sender.acknowledgements:
            await self._commit_next_records()

    async def _commit_next_records(self) -> None:
        assert self._sender is not None and isinstance(self._task, SourceTask)
        commit_record = self._task.commit_record
        records, places = self._sender.acknowledged.popleft()
        if inspect.iscoroutinefunction(commit_record):
            for record, place in zip(records, places, strict=True):
                await self._calls.call(commit_record, record, place)
        else:
            await self._calls.call(_call_each, commit_record, records, places)

    async def _send(self, polled: Polled) -> None:
        """Pass a poll batch to the producer. Return once the producer has room for it."""
        await self._wait_for(self._hand_over(polled))

    async def _hand_over(self, polled: Polled) -> None:
        assert self._sender is not None and self._tolerance is not None
        if polled.bad:
            self._note_reported(polled, self._tolerance)
        if polled.is_failed:
            await self._prepare_row_by_row(polled, self._tolerance)
        while self._tolerance.is_full:
            await self._rest(_MOMENT_SECONDS)
        offsets, uncovered = last_offsets(polled.records, self._offsets)
        # Offsets that `update_offsets` returns for the bad rows wait for their dead letters, too.
        batch = self._submitted.submit(offsets, uncovered=uncovered or bool(polled.bad))
        await self._sender.send(polled, batch)

    def _note_reported(self, polled: Polled, tolerance: Tolerance) -> None:
        """Count the rows that the plugin has reported. Raises ConnectError without tolerance."""
        for _ in polled.bad:
            self.metrics.failed(again=False)
        if not tolerance.tolerates_all:
            tolerance.refuse(polled.bad[0])

    async def _prepare_row_by_row(self, polled: Polled, tolerance: Tolerance) -> None:
        """Prepare a batch that has failed, without its bad rows.

        Raises ConnectError for the first bad row without tolerance.
        """
        rows = RowByRow(
            list(enumerate(polled.records)),
            lambda row: self._rows.row(row[1]),
            tolerance.retries,
            lambda again: self.metrics.failed(again=again),
            stops_at_first=not tolerance.tolerates_all,
        )
        while (seconds := await self._calls.call(rows.run)) is not None:
            await self._rest(seconds)
        polled.bad += [failed_source_row(record, error) for (_, record), error in rows.bad]
        if polled.bad and not tolerance.tolerates_all:
            tolerance.refuse(polled.bad[0])
        polled.topics = self._rows.topics((index, pairs) for (index, _), pairs in rows.good)

    async def _commit_regularly(self) -> None:
        interval = self.setting.worker.offset_flush_interval_ms / 1000
        while True:
            await asyncio.sleep(interval)
            try:
                await self._commit()
            except Exception as e:
                self._fail(e)
                return
            self._update_due = True

    async def _commit(self) -> None:
        async with self._committing:
            offsets = self._submitted.take_committable()
            if offsets:
                with self.metrics.committing():
                    await self._offsets.commit(offsets)
                self._commit_due = True

    async def _finish(self) -> None:
        """Wait for acknowledgements, then commit. A source that has ended waits without a time limit."""
        ended = self._context.is_finished and not self._ending.is_set()
        timeout = None if ended else self.setting.worker.offset_flush_timeout_ms / 1000
        sent = asyncio.ensure_future(self._flush_sent())
        try:
            await (self._wait_for(sent) if ended else asyncio.wait({sent}, timeout=timeout))
        except Stopping:
            ended = False
        finally:
            sent.cancel()
        if self._plugin_stop is None:
            await self._commit_records()
        await self._commit()
        if self._plugin_stop is None and await self._note_updates():
            await self._commit()
        await self._tell_last_commit(ended=ended)

    async def _tell_last_commit(self, *, ended: bool) -> None:
        """Call the plugin's `commit` for the last offsets, as Kafka does before a task stops."""
        if self._failure is not None:
            return
        if ended:
            await self._calls.call(self._task.commit)
            self._be_done()
        elif self._commit_due and self._plugin_stop is None:
            try:
                await self._calls.call(self._task.commit)
            except Exception as e:
                _log.warning("%s: its last commit() failed: %r", self.name, e)

    async def _flush_sent(self) -> None:
        """Wait for the acknowledgements of everything sent, dead letters included."""
        assert self._sender is not None and self._tolerance is not None
        await self._sender.flush()
        await self._tolerance.settled(None)

    async def _stop(self) -> None:
        if self._committer is not None:
            self._committer.cancel()
        if self._producer is not None:
            await self._producer.close(timeout_ms=0)
        if self._tolerance is not None:
            await self._tolerance.close()
        if self._plugin_stop is None:
            await self._calls.wait_idle(_MOMENT_SECONDS)
        try:
            await self._stop_plugin()
        finally:
            if self._transforms is not None and not self._calls.is_busy:
                await self._calls.call(self._transforms.close)

    def _stop_plugin(self) -> asyncio.Future[None]:
        """Call the plugin's `stop`, once; if another call is running, concurrently with it."""
        if self._plugin_stop is None:
            call = self._calls.call_concurrently if self._calls.is_busy else self._calls.call
            self._plugin_stop = asyncio.ensure_future(call(self._task.stop))
        return self._plugin_stop


def _call_each(
    commit_record: Callable[[SourceRecord, RecordMetadata | None], Any],
    records: Sequence[SourceRecord],
    places: Sequence[RecordMetadata | None],
) -> None:
    for record, place in zip(records, places, strict=True):
        commit_record(record, place)
