"""MirrorHeartbeatConnector: one task that writes heartbeats into the target, the worker's cluster.

In dedicated mode `mirror.heartbeats` writes the flow's heartbeats into the source.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from connect.api import BatchSourceTask, RawBatch, SourceConnector
from kafka_client.records import build_batch
from mirror.connectors.clients import FlowClients
from mirror.connectors.settings import MirrorHeartbeatConfig, flow_of
from mirror.connectors.source_offsets import OFFSET, Offset, Partition, check_offsets
from mirror.internal_topics import create_internal_topic
from mirror.records.heartbeat import Heartbeat

_ALIASES = ("sourceClusterAlias", "targetClusterAlias")


class MirrorHeartbeatTask(BatchSourceTask):
    """Returns a heartbeat at each interval."""

    def start(self, config: Mapping[str, str]) -> None:
        """Take the settings; the first heartbeat is due at once."""
        self._settings = flow_of(config, MirrorHeartbeatConfig)
        self._has_begun = False

    async def poll(self) -> list[RawBatch]:
        """Wait for the interval, except for the first heartbeat, and return one."""
        settings = self._settings
        if self._has_begun:
            await asyncio.sleep(settings.emit_heartbeats_interval_seconds)
        self._has_begun = True
        now, aliases = int(time.time() * 1000), (settings.source.alias, settings.target.alias)
        beat = Heartbeat(*aliases, now)
        data = build_batch([(now, beat.record_key, beat.record_value, ())])
        partition = dict(zip(_ALIASES, aliases, strict=True))
        return [RawBatch(settings.policy.heartbeats_topic(), 0, data, partition, {OFFSET: 0})]


class MirrorHeartbeatConnector(SourceConnector):
    """Writes heartbeats. Source: org.apache.kafka.connect.mirror.MirrorHeartbeatConnector."""

    CONFIG = MirrorHeartbeatConfig
    VERSION = "1"
    task_class = MirrorHeartbeatTask

    async def start(self, config: Mapping[str, str]) -> None:
        """Create the topic of heartbeats. Raises MillstreamError if the target fails."""
        self.config = dict(config)
        settings, parsed = flow_of(config, MirrorHeartbeatConfig), MirrorHeartbeatConfig.parse(config)
        parsed.warn_without_effect(self.context.connector)
        self._is_enabled = parsed.enabled and settings.emit_heartbeats
        if not self._is_enabled:
            return
        clients = FlowClients(settings, self.context.connector)
        await clients.open()
        try:
            topic, factor = settings.policy.heartbeats_topic(), settings.heartbeats_replication_factor
            await create_internal_topic(clients.target, topic, factor, "heartbeats.topic.replication.factor")
        finally:
            await clients.close()

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one config, or none if heartbeats are not enabled."""
        return [self.config] if self._is_enabled else []

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        """Check the form of the offsets. Raises ConnectError."""
        check_offsets(offsets, _ALIASES, only_zero=True)
        return True
