"""A running range sink task: polls the topics' ends and calls the plugin to copy up to them.

It joins no consumer group: the plugin's target has the position, and the group's offsets are committed
afterwards, for lag tools.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from connect.api.range_sink import OffsetRange, RangeSinkContext, RangeSinkTask
from connect.config import SinkConfig
from connect.errors import RetriableError
from connect.runtime.client_settings import cluster_of, consumer_settings, group_id
from connect.runtime.plugin_statistics import PluginStatistics
from connect.runtime.task import TaskSetting, WorkerTask, new_backoff
from connect.runtime.topics_regex import matches
from kafka_client import TopicMetadata, TopicPartition
from kafka_client.errors import BROKER_AWAY, MillstreamError
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)


class WorkerRangeTask(WorkerTask):
    """A worker's task that runs a `RangeSinkTask`."""

    _CALLS_HAVE_FLUSH_TIME: ClassVar[bool] = True

    def __init__(
        self, setting: TaskSetting, task: RangeSinkTask, *, on_change: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(setting, on_change=on_change)
        self._task = task
        self._plugin_statistics = PluginStatistics(self.name, task)
        self._sink = SinkConfig.parse(setting.connector_config)
        self._group = group_id(setting.connector, setting.worker.raw, setting.connector_config)
        self._committed: dict[TopicPartition, int] = {}

    def statistics(self) -> dict[str, Any]:
        """Return the position per partition, as the plugin last returned it."""
        return {"positions": {str(tp): offset for tp, offset in sorted(self._committed.items())}}

    def plugin_values(self) -> Values:
        """Return the statistics of the plugin's task."""
        return self._plugin_statistics.read()

    def request_commit(self) -> None:
        """Do nothing: every run commits."""

    async def _start(self) -> None:
        setting = self.setting
        worker = setting.worker
        self._task.context = RangeSinkContext(
            connector=setting.connector,
            task_id=setting.task_id,
            group_id=self._group,
            bootstrap_servers=",".join(
                cluster_of(worker.raw, setting.connector_config, "consumer", worker.bootstrap_servers)
            ),
            topics=tuple(self._sink.topics or await self._wait_for(self._topics())),
            client_settings=consumer_settings(setting.worker.raw, setting.connector_config),
        )
        await self._wait_for(self._calls.call(self._task.start, setting.config))

    async def _work(self) -> None:
        backoff = new_backoff()
        while True:
            await self._pause_here()
            try:
                await self._run_once()
                backoff.reset()
            except (RetriableError, *BROKER_AWAY) as e:
                self.metrics.failed(again=True)
                _log.warning("%s: run_once failed, calling it again: %s", self.setting.connector, e)
                await self._rest(backoff.next())
            await self._rest(self._sink.poll_interval_ms / 1000)

    async def _run_once(self) -> None:
        """Call the plugin once. A stop does not interrupt the call, as its commit is atomic."""
        ends = await self._wait_for(self._ends())
        for tp in ends:
            self._note_topic(tp.topic)
        positions = await self._calls.call(self._task.run_once, ends)
        moved = {tp: offset for tp, offset in positions.items() if self._committed.get(tp) != offset}
        if not moved:
            return
        self._committed.update(moved)
        try:
            with self.metrics.committing():
                await self.setting.admin.alter_group_offsets(self._group, moved)
        except MillstreamError as e:
            _log.warning("group %s: could not commit the position: %s", self._group, e)
            self._committed = {tp: o for tp, o in self._committed.items() if tp not in moved}

    async def _topics(self) -> Mapping[str, TopicMetadata]:
        pattern = self._sink.topics_pattern
        if pattern is None:
            metadata = await self.setting.client.metadata(self._sink.topics, allow_missing=True)
            return {name: metadata.topics[name] for name in self._sink.topics if name in metadata.topics}
        listed = await self.setting.admin.list_topics()
        return {name: topic for name, topic in listed.items() if matches(pattern, topic)}

    async def _ends(self) -> dict[TopicPartition, OffsetRange]:
        """Return every partition's log start, last stable offset and topic id."""
        topics = await self._topics()
        partitions = [
            TopicPartition(name, p) for name, topic in topics.items() for p in sorted(topic.partitions)
        ]
        admin = self.setting.admin
        starts = await admin.list_offsets(dict.fromkeys(partitions, "earliest"))
        ends = await admin.list_offsets(dict.fromkeys(partitions, "latest"), isolation_level="read_committed")
        return {
            tp: OffsetRange(starts[tp].offset, ends[tp].offset, topics[tp.topic].topic_id)
            for tp in partitions
        }

    async def _finish(self) -> None:
        """Do nothing: every run commits."""

    async def _stop(self) -> None:
        await self._calls.call(self._task.stop)
