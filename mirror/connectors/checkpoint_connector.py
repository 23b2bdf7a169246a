"""MirrorCheckpointConnector: finds the source's consumer groups, and splits them over tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect.api import SourceConnector
from kafka_client import Admin
from mirror.checkpoints.groups import find_groups
from mirror.connectors.assignment import ASSIGNED_GROUPS, groups_by_task
from mirror.connectors.checkpoint_task import MirrorCheckpointTask
from mirror.connectors.clients import FlowClients
from mirror.connectors.refresh import Refresh
from mirror.connectors.settings import MirrorCheckpointConfig, flow_of
from mirror.connectors.source_offsets import Offset, Partition, check_offsets
from mirror.internal_topics import create_internal_topic


class MirrorCheckpointConnector(SourceConnector):
    """Writes checkpoints of groups. Source: org.apache.kafka.connect.mirror.MirrorCheckpointConnector."""

    CONFIG = MirrorCheckpointConfig
    VERSION = "1"
    task_class = MirrorCheckpointTask

    async def start(self, config: Mapping[str, str]) -> None:
        """Create the topic of checkpoints and find the groups. Raises MillstreamError if a cluster fails."""
        self.config = dict(config)
        self._groups: list[str] = []
        self._refresh: Refresh | None = None
        self._clients: FlowClients | None = None
        settings = self._settings = flow_of(config, MirrorCheckpointConfig)
        parsed = MirrorCheckpointConfig.parse(config)
        parsed.warn_without_effect(self.context.connector)
        if not parsed.enabled:
            return
        clients = self._clients = FlowClients(settings, self.context.connector)
        await clients.open()
        try:
            topic = settings.policy.checkpoints_topic(settings.source.alias)
            factor = settings.groups.checkpoints_replication_factor
            await create_internal_topic(clients.target, topic, factor, "checkpoints.topic.replication.factor")
            # The source connector may start later than this one, and the tasks read the topic.
            factor, key = settings.offset_syncs_replication_factor, "offset-syncs.topic.replication.factor"
            await create_internal_topic(clients.of_syncs, settings.offset_syncs_topic, factor, key)
            self._source = Admin(clients.source)
            self._groups = await self._list_groups()
        except BaseException:
            await clients.close()
            raise
        if settings.groups.refresh:
            seconds = settings.groups.refresh_interval_seconds
            self._refresh = Refresh(self.context.connector, seconds, self._look)
            self._refresh.start()

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return a config with `task.assigned.groups` for each task; none if there are no groups."""
        shares = groups_by_task(self._groups, max_tasks)
        return [{**self.config, ASSIGNED_GROUPS: ",".join(share)} for share in shares]

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        """Check the form of the offsets. Raises ConnectError."""
        check_offsets(offsets, ("group", "topic"), has_partition=True, only_zero=True)
        return True

    async def stop(self) -> None:
        """Disconnect."""
        if self._refresh is not None:
            await self._refresh.stop()
        if self._clients is not None:
            await self._clients.close()

    async def _look(self) -> None:
        groups = await self._list_groups()
        if groups != self._groups:
            self._groups = groups
            self.context.request_task_reconfiguration()

    async def _list_groups(self) -> list[str]:
        settings = self._settings

        def remote_topic(topic: str) -> str | None:
            is_copied = settings.topics.takes(topic)
            return settings.policy.remote_topic(settings.source.alias, topic) if is_copied else None

        return sorted(await find_groups(self._source, settings.groups.groups, remote_topic))
