"""A running sink task: fetches, converts, puts, and commits the group's offsets once the plugin has flushed.

The consumer's own task handles rebalances, possibly while a `put` runs, so every call of the plugin holds the
lock `_turn`. Before partitions are revoked, the records put so far are flushed and committed.

Per partition, `_next` is the offset after the last record put, -2 or -1 before the first fetch. `_safe` is
the committed offset. `_since` is the first round of fetching whose results are valid: records fetched before
a rebalance or a seek, and not put yet, are dropped and fetched again.

A task that was suspended beyond its session notices it late. So the task confirms its membership with the
group before a flush and after `open`. A target that detects this raises PartitionsFenced from `put` or
`flush`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from connect.api.json_sink import JsonSinkTask
from connect.api.sink import SinkTask, SinkTaskContext
from connect.config import SinkConfig
from connect.errors import ConnectError, PartitionsFenced, RetriableError
from connect.runtime.client_settings import consumer_arguments, group_id, put_records_max
from connect.runtime.conversion import Conversion
from connect.runtime.errors.failed_row import failed_sink_row
from connect.runtime.errors.row_by_row import RowByRow
from connect.runtime.group_commit import commit_existing
from connect.runtime.json_batch import JsonSinkBatch
from connect.runtime.plugin_results import check_committed
from connect.runtime.plugin_statistics import PluginStatistics
from connect.runtime.reporter import Reporter
from connect.runtime.sink_rows import BatchFailed, SinkBatch, SinkRows, bounded
from connect.runtime.task import Stopping, TaskSetting, WorkerTask, new_backoff
from connect.runtime.task_metrics import SinkMetrics
from connect.runtime.task_rate import sizes
from connect.runtime.tolerance import Skipped, Tolerance
from connect.transforms.chain import TransformChain
from kafka_client import Consumer, Fetched, TopicPartition
from kafka_client.errors import BROKER_AWAY, RebalanceNeeded, UnreadableBatch
from kafka_client.fetcher.parts import OnUnreadable, Part
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
_WAIT_SECONDS_MAX = 0.5
_PART_RECORDS = 20_000
"""Records that are decoded, converted and put at a time: a few KB of a compressed batch may hold millions."""
_FENCED_MAX = 5
"""How often in a row, without a commit, the target may fence a task before the task fails."""


class WorkerSinkTask(WorkerTask):
    """A worker's task that runs a `SinkTask`."""

    def __init__(
        self, setting: TaskSetting, task: SinkTask, *, on_change: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(setting, on_change=on_change)
        self._task = task
        self._put_records: Callable[[Any], Any] = task.put
        self._plugin_statistics = PluginStatistics(self.name, task)
        self._context = SinkTaskContext(
            connector=setting.connector, task_id=setting.task_id, request_commit=self.request_commit
        )
        self._consumer: Consumer | None = None
        self._turn = asyncio.Lock()
        self._next: dict[TopicPartition, int] = {}
        self._safe: dict[TopicPartition, int] = {}
        self._since: dict[TopicPartition, int] = {}
        self._round = 0
        self._commit_at = 0.0
        self._fenced = 0
        self.metrics: SinkMetrics = SinkMetrics()
        self._tolerance: Tolerance | None = None
        self._transforms: TransformChain | None = None
        self._part_records = _PART_RECORDS
        self._part_bytes = 0

    def statistics(self) -> dict[str, Any]:
        """Return the counts of records delivered to the plugin and, if tolerated, skipped."""
        counts = {"records_delivered": self.delivered}
        if self._tolerance is not None and self._tolerance.tolerates_all:
            counts["records_skipped"] = self.metrics.records_skipped
        return counts

    @property
    def delivered(self) -> int:
        """Records put to the plugin without error."""
        return self.metrics.delivered

    def values(self) -> Mapping[str, Values]:
        """Return the task's metrics, by type."""
        return {**super().values(), "sink-task-metrics": self.metrics.values(len(self._next))}

    def plugin_values(self) -> Values:
        """Return the statistics of the plugin's task."""
        return self._plugin_statistics.read()

    def request_commit(self) -> None:
        """Commit soon rather than at the next interval. May be called from any thread."""
        self._commit_at = 0.0

    async def _start(self) -> None:
        setting = self.setting
        conversion: Conversion = await self._wait_for(
            self._calls.call(Conversion.configured, setting.worker, setting.connector_config)
        )
        self._transforms = await self._wait_for(
            self._calls.call(TransformChain.configured, setting.connector_config)
        )
        sink = SinkConfig.parse(setting.connector_config)
        self._part_records = put_records_max(setting.worker.raw, setting.connector_config) or _PART_RECORDS
        self._part_bytes = sink.put_max_bytes
        self._tolerance = await self._new_tolerance(sink)
        self._rows = SinkRows(conversion, self._transforms, keeps_raw=self._tolerance.has_reporter)
        if self._tolerance.has_reporter:
            self._context.reporter = Reporter(self._task, self._tolerance, self._fail)
        self._task.context = self._context
        await self._wait_for(self._calls.call(self._task.start, setting.config))
        self._consumer = Consumer(
            setting.client,
            group_id(setting.connector, setting.worker.raw, setting.connector_config),
            **consumer_arguments(setting.worker.raw, setting.connector_config),
        )
        await self._consumer.subscribe(
            sink.topics_pattern or sink.topics,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_lost=self._lost,
        )
        self._schedule_commit()

    async def _work(self) -> None:
        assert self._consumer is not None
        while True:
            await self._between_puts()
            try:
                for fetched in await self._wait_for(self._fetch(self._consumer)):
                    await self._deliver(fetched)
            except UnreadableBatch:
                await self._commit_or_rewind()  # what is before the batch is delivered
                raise

    async def _fetch(self, consumer: Consumer) -> list[Fetched]:
        """Fetch the next records, and begin a new round."""
        fetched = await consumer.fetch(timeout_ms=int(self._seconds_to_commit() * 1000))
        # The round begins after the fetch, so that records of partitions that a rebalance assigned during the
        # fetch are valid. No await may come in between: a rebalance there would take older records as valid.
        self._round += 1
        return fetched

    async def _between_puts(self) -> None:
        """Pause, stop or commit, if one of them is due."""
        await self._pause_here()
        if time.monotonic() >= self._commit_at:
            await self._commit_or_rewind()

    def _seconds_to_commit(self) -> float:
        """Return the seconds until the next commit, bounded, as `request_commit` may make one due earlier."""
        return min(max(self._commit_at - time.monotonic(), 0.01), _WAIT_SECONDS_MAX)

    async def _deliver(self, fetched: Fetched) -> None:
        """Put the fetched records, part by part, until a rebalance or seek makes them invalid."""
        assert self._tolerance is not None
        skipped = Skipped()
        self._note_topic(fetched.tp.topic)
        for part in self._parts(fetched, self._tolerance.on_unreadable(skipped)):
            await self._keep_rate(self._between_puts)
            if not await self._deliver_part(fetched, part, self._tolerance, skipped):
                return
            self.rate.take(len(part.records), self._sizes(part))
            await self._between_puts()

    def _parts(self, fetched: Fetched, on_unreadable: OnUnreadable | None) -> Iterator[Part]:
        """Yield the records that were fetched, as many at a time as one `put` gets.

        No part is larger than a second of the rate limits.
        """
        for whole in fetched.parts(self._part_records, on_unreadable=on_unreadable):
            for piece in self.rate.pieces(whole):
                yield from bounded(piece, self._part_bytes)

    def _sizes(self, part: Part) -> Iterable[int]:
        """Return the bytes of a part's keys and values, in any number of pieces."""
        return sizes(part.records, 2)

    def _new_batch(self, tp: TopicPartition, part: Part) -> SinkBatch:
        if isinstance(self._task, JsonSinkTask) and self._task.takes_json:
            self._put_records = self._task.put_json
            return JsonSinkBatch(self._rows, tp, part)
        return SinkBatch(self._rows, tp, part)

    async def _deliver_part(
        self, fetched: Fetched, part: Part, tolerance: Tolerance, skipped: Skipped
    ) -> bool:
        """Put a part, again after a backoff while the plugin raises RetriableError.

        Return False if a rebalance or seek has made the records invalid. `skipped` are the batches that were
        skipped in this part so far.
        """
        batch = self._new_batch(fetched.tp, part)
        backoff = new_backoff()
        tried = False
        while True:
            while tolerance.is_full:
                await self._rest_and_commit(backoff.next())
            async with self._turn:
                if not self._is_current(fetched):
                    return False
                if not tried:  # records dropped before this are counted when they are read again
                    self.metrics.read += len(part.records)
                    tolerance.count(skipped)
                    tried = True
                try:
                    await self._put(fetched, part, batch)
                    self._follow_rewinds()
                    return True
                except BatchFailed:
                    failed_rows = True
                except RetriableError as e:
                    failed_rows = False
                    self.metrics.failed(again=True)
                    _log.warning("%s: put failed, trying again: %s", self.name, e)
                except PartitionsFenced as e:
                    await self._reopen_fenced(e)
                    return False
            if not failed_rows:
                await self._rest_and_commit(backoff.next())
            elif not await self._prepare_row_by_row(fetched, part, batch, tolerance):
                return False

    async def _prepare_row_by_row(
        self, fetched: Fetched, part: Part, batch: SinkBatch, tolerance: Tolerance
    ) -> bool:
        """Prepare a batch that has failed, without its bad rows. Return False if it is not valid any more.

        Raises ConnectError for the first bad row without tolerance.
        """
        rows = RowByRow(
            part.records,
            batch.row,
            tolerance.retries,
            lambda again: self.metrics.failed(again=again),
            stops_at_first=not tolerance.tolerates_all,
        )
        while (seconds := await self._calls.call(rows.run)) is not None:
            await self._rest_and_commit(seconds)
            async with self._turn:
                if not self._is_current(fetched):
                    return False
        for record, error in rows.bad:
            row = failed_sink_row(fetched.tp, record, error)
            if not tolerance.tolerates_all:
                tolerance.refuse(row)
            await tolerance.leave_out(row)
        batch.records = [each for _, records in rows.good for each in records]
        return True

    async def _rest_and_commit(self, seconds: float) -> None:
        """Sleep, but commit and pause when that is due. Raises Stopping if the task is to stop."""
        again_at = time.monotonic() + seconds
        while (seconds := again_at - time.monotonic()) > 0:
            await self._rest(min(seconds, self._seconds_to_commit()))
            await self._between_puts()

    async def _new_tolerance(self, sink: SinkConfig) -> Tolerance:
        return Tolerance(self.name, sink, self.metrics, await self._dead_letters(sink), self._fail)

    def _is_current(self, fetched: Fetched) -> bool:
        """Return True if the records are the next ones of an assigned partition, fetched after a seek."""
        tp = fetched.tp
        if tp not in self._next:
            return False  # revoked meanwhile
        if self._round < self._since[tp]:
            self._seek(tp, self._next[tp])
            return False
        return True

    async def _put(self, fetched: Fetched, part: Part, batch: SinkBatch) -> None:
        tp = fetched.tp
        if self._next[tp] < 0:
            self._next[tp] = self._safe[tp] = fetched.position
        self._context.topic_ids[tp.topic] = fetched.topic_id
        # A position that the log has no more was passed over: nothing is known of what was there.
        self._context.positions[tp] = max(self._next[tp], fetched.position)
        if part.records:
            await self._calls.call_prepared(self._put_records, batch.prepared)
            if batch.count:
                self.metrics.put.record(time.monotonic() - batch.prepared_at)
                self.metrics.record_put(batch.count)
        self._next[tp] = part.next_offset

    def _seek(self, tp: TopicPartition, offset: int) -> None:
        assert self._consumer is not None
        self._consumer.seek(tp, offset)
        self._next[tp] = offset
        self._since[tp] = self._round + 1

    def _follow_rewinds(self) -> None:
        """Seek to the positions that the plugin has set by `context.offset`."""
        for tp, offset in self._context.rewinds.items():
            if tp in self._next:
                self._seek(tp, offset)
                self._safe[tp] = offset
        self._context.rewinds.clear()

    def _schedule_commit(self) -> None:
        self._commit_at = time.monotonic() + self.setting.worker.offset_flush_interval_ms / 1000

    async def _commit_or_rewind(self) -> None:
        self._schedule_commit()
        async with self._turn:
            try:
                await self._commit()
            except RetriableError as e:
                _log.warning("%s goes back to its committed offsets: %s", self.name, e)
                self._rewind()
            except PartitionsFenced as e:
                await self._reopen_fenced(e)

    async def _commit(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Flush the plugin, then commit the offsets it returns. The caller holds `_turn`.

        `partitions`: those whose offsets are committed; None: all.
        """
        assert self._consumer is not None
        of = self._next if partitions is None else self._next.keys() & partitions
        current = {tp: self._next[tp] for tp in of if self._next[tp] >= 0}
        if not current or not await self._is_member():
            return
        offsets: Mapping[TopicPartition, int] | None = await self._calls.call(self._task.pre_commit, current)
        check_committed(offsets)
        if offsets is None:
            await self._calls.call(self._task.flush, current)
            offsets = current
        changed = {
            tp: offset for tp, offset in self._committable(offsets, current) if offset != self._safe.get(tp)
        }
        if not changed:
            return
        consumer = self._consumer
        self.metrics.commits_begun += 1
        try:
            with self.metrics.committing():
                committed = await self._patiently(
                    lambda: commit_existing(self.setting.client, consumer, changed)
                )
        except RebalanceNeeded as e:
            self.metrics.commits_refused += 1
            _log.info("offsets of %s are not committed, the group rebalances: %s", self.setting.connector, e)
            self._rewind()  # a later flush must not start after records that were not committed
            return
        self._safe.update(committed)
        self.metrics.committed()
        self._fenced = 0

    def _committable(
        self, offsets: Mapping[TopicPartition, int], current: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[TopicPartition, int]]:
        """Yield the plugin's offsets, not behind what was put, nor behind dead letters not written yet."""
        assert self._tolerance is not None
        for tp, offset in offsets.items():
            if tp in current:
                put = min(offset, current[tp])
                yield tp, self._tolerance.unwritten.bounded(tp, put)

    async def _reopen_fenced(self, error: PartitionsFenced) -> None:
        """Close the partitions after the target has fenced this task, and open those it still owns again.

        The caller holds `_turn`. Raises ConnectError from `error` after `_FENCED_MAX` times without a commit:
        two connectors probably write to the same place.
        """
        self._fenced += 1
        if self._fenced > _FENCED_MAX:
            raise ConnectError(f"{error}; does another connector write to the same place?") from error
        _log.warning("%s asks the group for its partitions: %s", self.name, error)
        owned = set(self._next)
        for tp, offset in self._safe.items():  # read the refused records again
            self._seek(tp, offset)
        await self._calls.call(self._task.close, sorted(owned))
        if await self._is_member():
            await self._open(owned)
        else:
            self._forget(owned)

    async def _open(self, partitions: set[TopicPartition]) -> None:
        """Open partitions in the plugin, then confirm with the group that this task still owns them.

        A task that was suspended before the call may have opened partitions that another task owns by now. It
        closes them without a put, and the owner is fenced and opens them again.
        """
        for tp in partitions:
            # Positions of an earlier ownership are other tasks' by now.
            self._context.positions.pop(tp, None)
            if self._next[tp] >= 0:
                self._context.positions[tp] = self._next[tp]
        await self._calls.call(self._task.open, sorted(partitions))
        if await self._is_member():
            self._follow_rewinds()
        else:
            await self._close_partitions(partitions)

    async def _is_member(self) -> bool:
        """Return True if the task still owns its partitions; ask the group if its last response is too old.

        Without this check, a task suspended beyond its session would overwrite the new owner's flushed
        records.
        """
        assert self._consumer is not None
        try:
            await self._patiently(self._consumer.confirm)
        except RebalanceNeeded as e:
            _log.warning("%s writes nothing, its partitions are lost: %s", self.setting.connector, e)
            return False
        return True

    def _rewind(self) -> None:
        for tp, offset in self._safe.items():
            if self._next[tp] != offset:
                self._seek(tp, offset)

    async def _assigned(self, partitions: set[TopicPartition]) -> None:
        async with self._turn:
            assert self._consumer is not None
            for tp in partitions:
                self._next[tp] = position = self._consumer.position(tp)
                self._since[tp] = self._round + 1
                if position >= 0:
                    self._safe[tp] = position
            try:
                await self._open(partitions)
            except (Stopping, *BROKER_AWAY):  # the task ends, and cannot ask the group
                await self._close_partitions(partitions)

    async def _revoked(self, partitions: set[TopicPartition]) -> None:
        async with self._turn:
            if self._failure is None and any(self._next.get(tp, -1) >= 0 for tp in partitions):
                try:
                    await self._settle()
                    await self._commit(partitions)
                except (RetriableError, PartitionsFenced, Stopping) as e:
                    _log.warning("%s hands over without its last flush: %s", self.setting.connector, e)
            await self._close_partitions(partitions)

    async def _lost(self, partitions: set[TopicPartition]) -> None:
        async with self._turn:
            await self._close_partitions(partitions)

    async def _close_partitions(self, partitions: set[TopicPartition]) -> None:
        owned = sorted(partitions & self._next.keys())
        self._forget(owned)
        if owned:
            await self._calls.call(self._task.close, owned)

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            del self._next[tp], self._since[tp]
            self._safe.pop(tp, None)

    async def _finish(self) -> None:
        async with self._turn:
            await self._settle()
            try:
                await self._commit()
            except PartitionsFenced as e:
                if await self._is_member():
                    raise
                _log.warning("%s ends without its last flush: %s", self.setting.connector, e)

    async def _settle(self) -> None:
        """Wait, not for long, for the acknowledgements of dead letters: no commit passes a missing one."""
        if self._tolerance is not None:
            await self._tolerance.settled(self.setting.worker.offset_flush_timeout_ms / 1000)

    async def _stop(self) -> None:
        try:
            if self._consumer is not None:
                await self._consumer.close()
        finally:
            try:
                await self._calls.call(self._task.stop)
            finally:
                await self._stop_rows()

    async def _stop_rows(self) -> None:
        """Close the transforms, in their thread, and the dead letter queue."""
        if self._transforms is not None:
            await self._calls.call(self._transforms.close)
        if self._tolerance is not None:
            await self._tolerance.close()
