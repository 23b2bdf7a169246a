"""A running source task: poll, convert, send, and commit source offsets behind the acknowledgements.

Two coroutines: one polls and sends; the other commits every `offset.flush.interval.ms`. The plugin
meets its calls one at a time, so `commit()` is called between polls.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect.api.records import SourceRecord
from connect.api.source import SourceTask, SourceTaskContext
from connect.errors import ConnectError, DataError, RetriableError
from connect.runtime.backoff import Backoff
from connect.runtime.client_settings import producer_arguments
from connect.runtime.conversion import Conversion
from connect.runtime.submitted import SubmittedBatch, SubmittedOffsets
from connect.runtime.task import Stopping, TaskSetting, WorkerTask
from connect.runtime.topic_creation import TopicCreation, creation_rules
from connect.stores import ConnectorOffsets, OffsetStore
from logd.client import BatchProducer, partition_for_key
from logd.errors import ErrorCode, KafkaError
from logd.records import NewRecord

_log = logging.getLogger(__name__)

_IDLE_MIN = 0.005
_IDLE_MAX = 0.2


class WorkerSourceTask(WorkerTask):
    """Runs a `SourceTask`."""

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
        self._offsets = ConnectorOffsets(store, setting.connector)
        self._context = SourceTaskContext(
            connector=setting.connector, task_id=setting.task_id, offsets=self._offsets
        )
        self._submitted = SubmittedOffsets()
        self._committing = asyncio.Lock()
        self._committer: asyncio.Task[None] | None = None
        self._commit_due = False
        self._producer: BatchProducer | None = None
        self._unsettled: set[asyncio.Future[int | None]] = set()
        self.polled = 0
        self.acked = 0

    def statistics(self) -> dict[str, Any]:
        """Records polled from the source, and acknowledged by the log."""
        return {"records_polled": self.polled, "records_acked": self.acked}

    async def _start(self) -> None:
        setting = self.setting
        self._conversion = Conversion.configured(setting.worker, setting.connector_config)
        rules = creation_rules(setting.connector_config) if setting.worker.topic_creation_enable else []
        self._topics = TopicCreation(setting.producing_client, setting.admin, rules)
        arguments = producer_arguments(setting.worker.raw, setting.connector_config)
        self._producer = BatchProducer(setting.producing_client, **arguments)
        self._task.context = self._context
        await self._wait_for(self._calls.call(self._task.start, setting.config))
        await self._patiently(self._producer.start)
        self._committer = asyncio.create_task(self._commit_regularly())

    async def _work(self) -> None:
        idle = _IDLE_MIN
        backoff = Backoff()
        while True:
            await self._pause_here()
            try:
                records = await self._wait_for(self._calls.call(self._task.poll))
            except RetriableError as e:
                seconds = backoff.next_seconds()
                name = f"{self.setting.connector}-{self.setting.task_id}"
                _log.warning("%s: polling failed, again in %.1f s: %s", name, seconds, e)
                await self._rest(seconds)
                continue
            backoff = Backoff()
            if records:
                idle = _IDLE_MIN
                self.polled += len(records)
                await self._send(records)
            if self._commit_due:
                self._commit_due = False
                await self._wait_for(self._calls.call(self._task.commit))
            if self._context.is_finished:
                return
            if not records:
                await self._rest(idle)
                idle = min(idle * 2, _IDLE_MAX)

    async def _send(self, records: Sequence[SourceRecord]) -> None:
        """Hand a poll batch to the producer; returns once there is room for it, not once it is acked."""
        batch = self._submitted.submit(self._last_offsets(records))
        pending = _Pending(self, batch, len(records))
        for topic, part in _by_topic(records).items():
            await self._wait_for(self._send_topic(topic, part, pending))
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
            self._unsettled.add(future)
            pending.watch(future)

    def _last_offsets(self, records: Sequence[SourceRecord]) -> dict[bytes, bytes]:
        """For each source partition's key the last offset in the batch."""
        last: dict[int, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        for record in records:
            partition = record.source_partition
            if partition is not None and record.source_offset is not None:
                last[id(partition)] = (partition, record.source_offset)
        offsets: dict[bytes, Mapping[str, Any]] = {}
        if len(last) <= 1:
            return {self._offsets.key(p): self._offsets.encode(offset) for p, offset in last.values()}
        for record in records:  # several dicts may be one partition: then the order of records decides
            if record.source_partition is not None and record.source_offset is not None:
                offsets[self._offsets.key(record.source_partition)] = record.source_offset
        return {key: self._offsets.encode(offset) for key, offset in offsets.items()}

    async def _partitioned(self, topic: str, records: Sequence[SourceRecord]) -> dict[int, list[NewRecord]]:
        assert self._producer is not None
        count = await self._patiently(lambda: self._topics.partition_count(topic))
        partitioned: dict[int, list[NewRecord]] = defaultdict(list)
        for source, record in zip(records, self._conversion.to_log(topic, records), strict=True):
            key = record[1]
            if source.partition is not None:
                partition = source.partition
            elif key is not None:
                partition = partition_for_key(key, count)
            else:
                partition = self._producer.partition_for(topic, None, count)
            partitioned[partition].append(record)
        return partitioned

    def settled(self, future: asyncio.Future[int | None]) -> bool:
        """A send ended. If it was not acknowledged, nothing behind it may be committed: the task fails."""
        self._unsettled.discard(future)
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

    async def _commit(self) -> None:
        async with self._committing:
            offsets = self._submitted.take_committable()
            if offsets:
                await self._offsets.commit(offsets)
                self._commit_due = True

    async def _finish(self) -> None:
        """Wait for what was sent, then commit; a source that has ended waits as long as that takes."""
        ended = self._context.is_finished and not self._ending.is_set()
        timeout = None if ended else self.setting.worker.offset_flush_timeout_ms / 1000
        settling = asyncio.ensure_future(self._settle())
        try:
            await (self._wait_for(settling) if ended else asyncio.wait({settling}, timeout=timeout))
        except Stopping:
            ended = False
        finally:
            settling.cancel()
        await self._commit()
        if ended and self._failure is None:
            await self._calls.call(self._task.commit)
            self._be_done()

    async def _settle(self) -> None:
        assert self._producer is not None
        await self._producer.flush()
        if self._unsettled:
            await asyncio.wait(self._unsettled)

    async def _stop(self) -> None:
        if self._committer is not None:
            self._committer.cancel()
        if self._producer is not None:
            await self._producer.close(timeout_ms=0)
        await self._calls.call(self._task.stop)


class _Pending:
    """A poll batch's futures: all done, the batch is acknowledged."""

    __slots__ = ("_batch", "_count", "_sealed", "_task", "_waiting")

    def __init__(self, task: WorkerSourceTask, batch: SubmittedBatch, count: int) -> None:
        self._task = task
        self._batch = batch
        self._count = count
        self._waiting = 0
        self._sealed = False

    def watch(self, future: asyncio.Future[int | None]) -> None:
        self._waiting += 1
        future.add_done_callback(self._settled)

    def sealed(self) -> None:
        """No more futures will come."""
        self._sealed = True
        self._maybe_acked()

    def _settled(self, future: asyncio.Future[int | None]) -> None:
        if self._task.settled(future):
            self._waiting -= 1
            self._maybe_acked()

    def _maybe_acked(self) -> None:
        if self._sealed and self._waiting == 0:
            self._task.acked += self._count
            self._batch.acked()


def _by_topic(records: Sequence[SourceRecord]) -> Mapping[str, Sequence[SourceRecord]]:
    first = records[0].topic
    if all(record.topic == first for record in records):
        return {first: records}
    topics: dict[str, list[SourceRecord]] = defaultdict(list)
    for record in records:
        topics[record.topic].append(record)
    return topics
