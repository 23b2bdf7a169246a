"""A running sink task: fetch, convert, put, and commit the group's offsets once the plugin has flushed.

Rebalances come from the consumer's own task while a `put` may be under way: every call of the plugin is made
with `_turn` locked. Before partitions go, what was put is flushed and committed.

Per partition: `_next` is the offset up to which the plugin was given records (-2, -1 until the first fetch
tells), `_safe` what is committed, and `_since` the first round of fetching whose results count: what was
fetched before a rebalance or a seek, and not put yet, is dropped and fetched again.

A task that stood still beyond its session learns of it late. Before a flush and behind `open` the group is
asked; a target that can tell raises PartitionsFenced from `put` or `flush`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from connect.api.records import SinkRecord
from connect.api.sink import SinkTask, SinkTaskContext
from connect.config import SinkConfig
from connect.errors import ConnectError, PartitionsFenced, RetriableError
from connect.runtime.client_settings import consumer_arguments, group_id
from connect.runtime.conversion import Conversion, OnError
from connect.runtime.plugin_statistics import PluginStatistics
from connect.runtime.task import Stopping, TaskSetting, WorkerTask, new_backoff
from connect.runtime.task_metrics import SinkMetrics
from connect.runtime.tolerance import Skipped, Tolerance
from kafka_client import Consumer, Fetched, TopicPartition
from kafka_client.errors import BROKER_AWAY, RebalanceNeeded, UnreadableBatch
from kafka_client.fetcher.parts import Part
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
_WAIT_SECONDS_MAX = 0.5
_CONVERTED_RECORDS = 1000
"""Records that are converted without a turn of the event loop between."""
_PART_RECORDS = 20_000
"""Records that are decoded, converted and put at a time: a few KB of a compressed batch may hold millions."""
_FENCED_MAX = 5
"""How often in a row, without a commit between, the target may fence a task before the task fails."""


class WorkerSinkTask(WorkerTask):
    """Runs a `SinkTask`."""

    def __init__(
        self, setting: TaskSetting, task: SinkTask, *, on_change: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(setting, on_change=on_change)
        self._task = task
        self._told = PluginStatistics(self.name, task)
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

    def statistics(self) -> dict[str, Any]:
        """Records the plugin has taken."""
        counts = {"records_delivered": self.delivered}
        if self._tolerance is not None and self._tolerance.tolerates_all:
            counts["records_skipped"] = self.metrics.records_skipped
        return counts

    @property
    def delivered(self) -> int:
        """Records that the plugin has taken."""
        return self.metrics.delivered

    def values(self) -> Mapping[str, Values]:
        """See `WorkerTask`."""
        return {**super().values(), "sink-task-metrics": self.metrics.values(len(self._next))}

    def told_by_plugin(self) -> Values:
        """See `WorkerTask`."""
        return self._told.read()

    def request_commit(self) -> None:
        """Commit soon rather than at the next interval. May be called from any thread."""
        self._commit_at = 0.0

    async def _start(self) -> None:
        setting = self.setting
        self._conversion = Conversion.configured(setting.worker, setting.connector_config)
        sink = SinkConfig.parse(setting.connector_config)
        self._tolerance = Tolerance(self.name, sink, self.metrics)
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
        """What comes next. Its round begins as it is handed out, without a turn of the loop between: what a
        rebalance assigns while this waits is not thrown away as if it had been fetched before.
        """
        fetched = await consumer.fetch(timeout_ms=int(self._seconds_to_commit() * 1000))
        self._round += 1
        return fetched

    async def _between_puts(self) -> None:
        """A point where a pause, a stop or a commit that is due takes effect."""
        await self._pause_here()
        if time.monotonic() >= self._commit_at:
            await self._commit_or_rewind()

    def _seconds_to_commit(self) -> float:
        """Seconds to wait for the next commit; bounded, because `request_commit` may make one due earlier."""
        return min(max(self._commit_at - time.monotonic(), 0.01), _WAIT_SECONDS_MAX)

    async def _deliver(self, fetched: Fetched) -> None:
        """Put what was fetched, part by part, until all is put or it is not what comes next any more."""
        assert self._tolerance is not None
        skipped = Skipped()
        for part in fetched.parts(_PART_RECORDS, on_unreadable=self._tolerance.on_unreadable(skipped)):
            if not await self._deliver_part(fetched, part, self._tolerance, skipped):
                return
            await self._between_puts()

    async def _deliver_part(
        self, fetched: Fetched, part: Part, tolerance: Tolerance, skipped: Skipped
    ) -> bool:
        """Put until the plugin takes it, with a backoff between; rebalances may come between the attempts.

        Return False if what was fetched is not what comes next any more. `skipped` is what was left out of
        this part so far.
        """
        on_error = skipped.note_record if tolerance.tolerates_all else None
        records = await self._converted(fetched.tp, part, on_error)
        backoff = new_backoff()
        tried = False
        while True:
            async with self._turn:
                if not self._is_current(fetched):
                    return False
                if not tried:  # what is dropped unseen is read again, and counted then
                    self.metrics.read += len(part.records)
                    tolerance.count(skipped)
                    tried = True
                try:
                    await self._put(fetched, part, records)
                    self._follow_rewinds()
                    return True
                except RetriableError as e:
                    self.metrics.failed(again=True)
                    _log.warning("%s will be given its records again: %s", self.name, e)
                except PartitionsFenced as e:
                    await self._take_again(e)
                    return False
            again_at = time.monotonic() + backoff.next()
            while (seconds := again_at - time.monotonic()) > 0:
                await self._rest(min(seconds, self._seconds_to_commit()))
                await self._between_puts()

    async def _converted(self, tp: TopicPartition, part: Part, on_error: OnError | None) -> list[SinkRecord]:
        """Return the records as the plugin takes them; the event loop has its turn between some of them."""
        records: list[SinkRecord] = []
        for start in range(0, len(part.records), _CONVERTED_RECORDS):
            if start:
                await asyncio.sleep(0)
            some = part.records[start : start + _CONVERTED_RECORDS]
            records += self._conversion.from_log(tp, some, part.timestamp_type, on_error)
        return records

    def _is_current(self, fetched: Fetched) -> bool:
        """Whether it is what comes next in a partition of ours; what was fetched before a seek is not."""
        tp = fetched.tp
        if tp not in self._next:
            return False  # taken away meanwhile
        if self._round < self._since[tp]:
            self._seek(tp, self._next[tp])
            return False
        return True

    async def _put(self, fetched: Fetched, part: Part, records: Sequence[SinkRecord]) -> None:
        tp = fetched.tp
        if self._next[tp] < 0:
            self._next[tp] = self._safe[tp] = fetched.position
        if records:
            with self.metrics.put.timed():
                await self._calls.call(self._task.put, records)
            self.metrics.took(len(records))
        self._next[tp] = part.next_offset

    def _seek(self, tp: TopicPartition, offset: int) -> None:
        assert self._consumer is not None
        self._consumer.seek(tp, offset)
        self._next[tp] = offset
        self._since[tp] = self._round + 1

    def _follow_rewinds(self) -> None:
        """Positions the plugin asked for (`context.offset`): its own record of what the target holds."""
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
                await self._take_again(e)

    async def _commit(self) -> None:
        """Flush the plugin, then commit what it says is safe. The caller holds the turn."""
        assert self._consumer is not None
        current = {tp: offset for tp, offset in self._next.items() if offset >= 0}
        if not current or not await self._is_member():
            return
        offsets: Mapping[TopicPartition, int] | None = await self._calls.call(self._task.pre_commit, current)
        if offsets is None:
            await self._calls.call(self._task.flush, current)
            offsets = current
        changed = {
            tp: min(offset, current[tp])
            for tp, offset in offsets.items()
            if tp in current and offset != self._safe.get(tp)
        }
        if not changed:
            return
        consumer = self._consumer
        self.metrics.commits_begun += 1
        try:
            with self.metrics.committing():
                await self._patiently(lambda: consumer.commit(changed))
        except RebalanceNeeded as e:
            self.metrics.commits_refused += 1
            _log.info("offsets of %s are not committed, the group rebalances: %s", self.setting.connector, e)
            self._rewind()  # a later flush must not begin behind one that was not committed
            return
        self._safe.update(changed)
        self.metrics.committed()
        self._fenced = 0

    async def _take_again(self, error: PartitionsFenced) -> None:
        """The target has fenced this task: close its partitions, and open those again that are still its own.

        The caller holds the turn. Raises ConnectError from `error` when that repeats without a commit: two
        connectors write to one place.
        """
        self._fenced += 1
        if self._fenced > _FENCED_MAX:
            raise ConnectError(f"{error}; does another connector write to the same place?") from error
        _log.warning("%s asks the group for its partitions: %s", self.name, error)
        held = set(self._next)
        for tp, offset in self._safe.items():  # to read again what the target refused
            self._seek(tp, offset)
        await self._calls.call(self._task.close, sorted(held))
        if await self._is_member():
            await self._open(held)
        else:
            self._forget(held)

    async def _open(self, partitions: set[TopicPartition]) -> None:
        """Open partitions at the plugin, then ask the group whether they are still this task's.

        A task that was suspended before the call may have opened partitions that another owns by now. It
        gives them up without a put, and the owner is fenced and opens them again.
        """
        await self._calls.call(self._task.open, sorted(partitions))
        if await self._is_member():
            self._follow_rewinds()
        else:
            await self._give_up(partitions)

    async def _is_member(self) -> bool:
        """Whether the partitions are still this task's; asks the group if its last answer is too long ago.

        A task that was suspended beyond its session would overwrite what the new owner has flushed.
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
                await self._give_up(partitions)

    async def _revoked(self, partitions: set[TopicPartition]) -> None:
        async with self._turn:
            if self._failure is None and any(self._next.get(tp, -1) >= 0 for tp in partitions):
                try:
                    await self._commit()
                except (RetriableError, PartitionsFenced, Stopping) as e:
                    _log.warning("%s hands over without its last flush: %s", self.setting.connector, e)
            await self._give_up(partitions)

    async def _lost(self, partitions: set[TopicPartition]) -> None:
        async with self._turn:
            await self._give_up(partitions)

    async def _give_up(self, partitions: set[TopicPartition]) -> None:
        held = sorted(partitions & self._next.keys())
        self._forget(held)
        if held:
            await self._calls.call(self._task.close, held)

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            del self._next[tp], self._since[tp]
            self._safe.pop(tp, None)

    async def _finish(self) -> None:
        async with self._turn:
            try:
                await self._commit()
            except PartitionsFenced as e:
                if await self._is_member():
                    raise
                _log.warning("%s ends without its last flush: %s", self.setting.connector, e)

    async def _stop(self) -> None:
        try:
            if self._consumer is not None:
                await self._consumer.close()
        finally:
            await self._calls.call(self._task.stop)
