"""MirrorCheckpointConnector: finds the source's consumer groups, and splits them over tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_client import Admin
from mirror.checkpoints.groups import find_groups
from mirror.connectors.assignment import ASSIGNED_GROUPS, groups_by_task
from mirror.connectors.checkpoint_task import MirrorCheckpointTask
from mirror.connectors.flow_connector import FlowConnector
from mirror.connectors.settings import MirrorCheckpointConfig
from mirror.connectors.source_offsets import Offset, Partition, check_offsets
from mirror.internal_topics import create_internal_topic


class MirrorCheckpointConnector(FlowConnector):
    """Writes checkpoints of groups. Source: org.apache.kafka.connect.mirror.MirrorCheckpointConnector."""

    CONFIG = MirrorCheckpointConfig
    task_class = MirrorCheckpointTask

    def __init__(self) -> None:
        self._groups: list[str] = []

    async def begin(self) -> None:
        """Create the topics of checkpoints and of offset syncs, and find the groups."""
        settings, clients = self.settings, self.clients
        topic = settings.policy.checkpoints_topic(settings.source.alias)
        factor = settings.groups.checkpoints_replication_factor
        await create_internal_topic(clients.target, topic, factor, "checkpoints.topic.replication.factor")
        # The source connector may start later than this one, and the tasks read the topic.
        factor, key = settings.offset_syncs_replication_factor, "offset-syncs.topic.replication.factor"
        await create_internal_topic(clients.of_syncs, settings.offset_syncs_topic, factor, key)
        self._source = Admin(clients.source)
        self._groups = await self._list_groups()

    @property
    def look_seconds(self) -> float | None:
        """The interval of `refresh.groups.interval.seconds`, None if groups are not refreshed."""
        groups = self.settings.groups
        return groups.refresh_interval_seconds if groups.refresh else None

    async def look(self) -> None:
        """Look for new and deleted groups; have tasks planned again if there are some."""
        groups = await self._list_groups()
        if groups != self._groups:
            self._groups = groups
            self.context.request_task_reconfiguration()

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

    async def _list_groups(self) -> list[str]:
        groups = await find_groups(self._source, self.settings.groups.groups, self.settings.copied_topic)
        return sorted(groups)
