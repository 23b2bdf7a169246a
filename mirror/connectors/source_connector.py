"""MirrorSourceConnector: creates remote topics, and splits the partitions to copy over tasks."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kafka_client import Admin, TopicPartition
from mirror.connectors.assignment import ASSIGNED_PARTITIONS, partitions_by_task, partitions_text
from mirror.connectors.flow_connector import FlowConnector
from mirror.connectors.settings import MirrorSourceConfig
from mirror.connectors.source_offsets import Offset, Partition, check_offsets
from mirror.connectors.source_task import MirrorSourceTask
from mirror.internal_topics import create_internal_topic
from mirror.topics import RemoteTopics

log = logging.getLogger(__name__)


class MirrorSourceConnector(FlowConnector):
    """Copies topics of another cluster. Source: org.apache.kafka.connect.mirror.MirrorSourceConnector."""

    CONFIG = MirrorSourceConfig
    task_class = MirrorSourceTask

    def __init__(self) -> None:
        self._partitions: list[TopicPartition] = []

    async def begin(self) -> None:
        """Create the offset-syncs topic and the remote topics."""
        settings, clients = self.settings, self.clients
        self._topics = RemoteTopics(settings, Admin(clients.source), Admin(clients.target))
        if settings.emit_offset_syncs:
            factor, key = settings.offset_syncs_replication_factor, "offset-syncs.topic.replication.factor"
            await create_internal_topic(clients.of_syncs, settings.offset_syncs_topic, factor, key)
        self._partitions = await self._aligned()

    @property
    def look_seconds(self) -> float | None:
        """The interval of `refresh.topics.interval.seconds`, None if topics are not refreshed."""
        settings = self.settings
        return settings.refresh_topics_interval_seconds if settings.refresh_topics else None

    async def look(self) -> None:
        """Look for new and deleted topics and partitions; have tasks planned again if there are some."""
        partitions = await self._aligned()
        if partitions != self._partitions:
            added = set(partitions) - set(self._partitions)
            deleted = set(self._partitions) - set(partitions)
            log.info("%s: %d new partitions, %d deleted", self.context.connector, len(added), len(deleted))
            self._partitions = partitions
            self.context.request_task_reconfiguration()

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return a config with `task.assigned.partitions` for each task; none if there is nothing to copy."""
        shares = partitions_by_task(self._partitions, max_tasks)
        return [{**self.config, ASSIGNED_PARTITIONS: partitions_text(share)} for share in shares]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Return True, unless the source's consumer is to read records of open transactions."""
        keys = ("source.consumer.isolation.level", "consumer.isolation.level")
        return all(config.get(key, "read_committed") != "read_uncommitted" for key in keys)

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        """Check the form of the offsets. Raises ConnectError."""
        check_offsets(offsets, ("cluster", "topic"), has_partition=True)
        return True

    async def _aligned(self) -> list[TopicPartition]:
        """Return the partitions to copy, sorted, once the target has remote topics for them."""
        topics = await self._topics.chosen()
        refused = await self._topics.align(topics)
        for name, why in refused.items():
            log.warning("%s: %s is not copied: %s", self.context.connector, name, why)
        return [
            TopicPartition(topic.name, number)
            for topic in topics
            if topic.name not in refused
            for number in sorted(topic.partitions)
        ]
