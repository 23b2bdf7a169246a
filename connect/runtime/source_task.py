"""A running source task: polls, converts, sends, and commits source offsets of acknowledged records.

One coroutine polls and sends, another commits every `offset.flush.interval.ms`. Plugin methods are called one
at a time, so `commit()` is called between polls. Only `stop()` may be called while a `poll` blocks, to
interrupt it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from connect.api.records import SourceBatch, SourceRecord
from connect.api.source import SourceTask, SourceTaskContext
from connect.errors import ConnectError, DataError, RetriableError
from connect.runtime.batch_offsets import last_offsets
from connect.runtime.client_settings import producer_arguments
from connect.runtime.conversion import Conversion
from connect.runtime.plugin_statistics import PluginStatistics
from connect.runtime.submitted import SubmittedBatch, SubmittedOffsets
from connect.runtime.task import Stopping, TaskSetting, WorkerTask, new_backoff
from connect.runtime.task_metrics import SourceMetrics
from connect.runtime.topic_creation import TopicCreation, creation_rules
from connect.stores import ConnectorOffsets, OffsetStore
from kafka_client import Backoff, BatchProducer, partition_for_key
from kafka_client.errors import BROKER_AWAY, ErrorCode, KafkaError
from kafka_client.metrics.metrics import Values
from kafka_client.records import NewRecord

_log = logging.getLogger(__name__)

_Document = Mapping[str, Any]
_IDLE_MIN_SECONDS = 0.005
_IDLE_MAX_SECONDS = 0.2
_MOMENT_SECONDS = 0.1
"""How long a stop waits for a plugin's call to return before it calls `stop` concurrently."""


class WorkerSourceTask(WorkerTask):
    """A worker's task that runs a `SourceTask`."""

    def __init__(
        self,
        setting: TaskSetting,
        task: SourceTask,
        store: OffsetStore,
        *,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(setting, on_change=on_change)
        self._task = task
        self._plugin_statistics = PluginStatistics(self.name, task)
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
        self._producer: BatchProducer | None = None
        self._unanswered: set[asyncio.Future[int | None]] = set()
        self.metrics: SourceMetrics = SourceMetrics()

    def statistics(self) -> dict[str, Any]:
        """Return the counts of records polled from the source and acknowledged by the log."""
        return {"records_polled": self.polled, "records_acked": self.acked}

    def plugin_values(self) -> Values:
        """Return the statistics of the plugin's task."""
        return self._plugin_statistics.read()

    def queued(self) -> Values:
        """Return the counts of offsets that are not committed and sends that are not acknowledged."""
        return {**self._submitted.statistics(), "unanswered_sends": len(self._unanswered)}

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
        self._conversion = Conversion.configured(setting.worker, setting.connector_config)
        rules = creation_rules(setting.connector_config) if setting.worker.topic_creation_enable else []
        self._topics = TopicCreation(setting.client, setting.admin, rules)
        arguments = producer_arguments(setting.worker.raw, setting.connector_config)
        self._producer = BatchProducer(setting.client, **arguments)
        self._task.context = self._context
        await self._wait_for(self._calls.call(self._task.start, setting.config))
        await self._patiently(self._producer.start)
        self._committer = asyncio.create_task(self._commit_regularly())

    async def _work(self) -> None:
        idle = Backoff(_IDLE_MIN_SECONDS, _IDLE_MAX_SECONDS)
        backoff = new_backoff()
        while True:
            await self._pause_here()
            started_at = time.monotonic()
            try:
                records = await self._poll()
            except RetriableError as e:
                self.metrics.failed(again=True)
                seconds = backoff.next()
                _log.warning("%s: polling failed, again in %.1f s: %s", self.name, seconds, e)
                await self._rest(seconds)
                continue
            backoff.reset()
            if records:
                idle.reset()
                self.metrics.record_poll(len(records), time.monotonic() - started_at)
                await self._send(records)
            await self._between_polls()
            if self._context.is_finished:
                return
            if not records:
                await self._rest(idle.next())

    async def _poll(self) -> Sequence[SourceRecord] | None:
        """Call the plugin's `poll`.

        Raises Stopping if the task is to stop, after sending records of that poll.
        """
        polling = asyncio.ensure_future(self._calls.call(self._task.poll))
        try:
            return await self._wait_for(asyncio.shield(polling))
        except Stopping:
            records = await self._interrupt(polling)
            if records and self._failure is None:
                await self._send_last(records)
            raise

    async def _interrupt(
        self, polling: asyncio.Future[Sequence[SourceRecord] | None]
    ) -> Sequence[SourceRecord] | None:
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

    async def _send_last(self, records: Sequence[SourceRecord]) -> None:
        """Send the records for at most `offset.flush.timeout.ms`; the rest is read again after a restart."""
        self.metrics.record_poll(len(records))
        try:
            async with asyncio.timeout(self.setting.worker.offset_flush_timeout_ms / 1000):
                await self._hand_over(records)
        except (TimeoutError, *BROKER_AWAY) as e:
            _log.warning("%s: its last records are not sent: %r", self.name, e)

    async def _between_polls(self) -> None:
        """Call the plugin's `update_offsets` and `commit` if they are due; calls are made one at a time."""
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

    async def _send(self, records: Sequence[SourceRecord]) -> None:
        """Pass a poll batch to the producer. Return once the producer has room for it."""
        await self._wait_for(self._hand_over(records))

    async def _hand_over(self, records: Sequence[SourceRecord]) -> None:
        offsets, uncovered = last_offsets(records, self._offsets)
        batch = self._submitted.submit(offsets, uncovered=uncovered)
        pending = _Pending(self, batch, len(records))
        for topic, part in _by_topic(records).items():
            await self._send_topic(topic, part, pending)
        pending.sealed()

    async def _send_topic(self, topic: str, records: Sequence[SourceRecord], pending: _Pending) -> None:
        assert self._producer is not None
        if not topic:
            raise DataError("a record has no topic")
        for partition, new_records in (await self._partitioned(topic, records)).items():
            try:
                future = await self._producer.send(topic, partition, new_records)
            except KafkaError as e:
                if e.code is not ErrorCode.MESSAGE_TOO_LARGE:
                    raise
                raise ConnectError(
                    f"{e}; it is producer.override.max.request.size of the connector, and the topic's "
                    "max.message.bytes has to allow as much"
                ) from e
            self._unanswered.add(future)
            pending.watch(future)

    async def _partitioned(self, topic: str, records: Sequence[SourceRecord]) -> dict[int, list[NewRecord]]:
        assert self._producer is not None
        count = await self._patiently(lambda: self._topics.partition_count(topic))
        converted = self._conversion.to_log(topic, records)
        if isinstance(records, SourceBatch) or [source.partition for source in records].count(None) == len(
            records
        ):
            return self._producer.partitioned(topic, converted, count)
        partitioned: dict[int, list[NewRecord]] = defaultdict(list)
        for source, record in zip(records, converted, strict=True):
            key = record[1]
            if source.partition is not None:
                partition = source.partition
            elif key is not None:
                partition = partition_for_key(key, count)
            else:
                partition = self._producer.partition_for(topic, None, count)
            partitioned[partition].append(record)
        return partitioned

    def send_ended(self, future: asyncio.Future[int | None]) -> bool:
        """Handle the end of a send. Return True if it was acknowledged; otherwise fail the task."""
        self._unanswered.discard(future)
        error = ConnectError("sending was cancelled") if future.cancelled() else future.exception()
        if error is not None:
            self._fail(error)
        return error is None

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
        await self._commit()
        if self._plugin_stop is None and await self._note_updates():
            await self._commit()
        if ended and self._failure is None:
            await self._calls.call(self._task.commit)
            self._be_done()

    async def _flush_sent(self) -> None:
        assert self._producer is not None
        await self._producer.flush()
        if self._unanswered:
            await asyncio.wait(self._unanswered)

    async def _stop(self) -> None:
        if self._committer is not None:
            self._committer.cancel()
        if self._producer is not None:
            await self._producer.close(timeout_ms=0)
        if self._plugin_stop is None:
            await self._calls.wait_idle(_MOMENT_SECONDS)
        await self._stop_plugin()

    def _stop_plugin(self) -> asyncio.Future[None]:
        """Call the plugin's `stop`, once; if another call is running, concurrently with it."""
        if self._plugin_stop is None:
            call = self._calls.call_concurrently if self._calls.is_busy else self._calls.call
            self._plugin_stop = asyncio.ensure_future(call(self._task.stop))
        return self._plugin_stop


class _Pending:
    """The futures of a poll batch, which is acknowledged when all are."""

    __slots__ = ("_batch", "_count", "_sealed", "_task", "_waiting")

    def __init__(self, task: WorkerSourceTask, batch: SubmittedBatch, count: int) -> None:
        self._task = task
        self._batch = batch
        self._count = count
        self._waiting = 0
        self._sealed = False

    def watch(self, future: asyncio.Future[int | None]) -> None:
        self._waiting += 1
        future.add_done_callback(self._send_ended)

    def sealed(self) -> None:
        """Declare that all futures were added."""
        self._sealed = True
        self._maybe_acked()

    def _send_ended(self, future: asyncio.Future[int | None]) -> None:
        if self._task.send_ended(future):
            self._waiting -= 1
            self._maybe_acked()

    def _maybe_acked(self) -> None:
        if self._sealed and self._waiting == 0:
            self._task.metrics.acked += self._count
            self._batch.acked()


def _by_topic(records: Sequence[SourceRecord]) -> Mapping[str, Sequence[SourceRecord]]:
    if isinstance(records, SourceBatch):
        return {records.topic: records}
    first = records[0].topic
    if all(record.topic == first for record in records):
        return {first: records}
    topics: dict[str, list[SourceRecord]] = defaultdict(list)
    for record in records:
        topics[record.topic].append(record)
    return topics
