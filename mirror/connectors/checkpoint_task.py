"""MirrorCheckpointTask: returns the checkpoints of its groups, and commits their offsets in the target."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from connect.api import BatchSourceTask, RawBatch, RetriableError
from kafka_client import Admin
from kafka_client.errors import BROKER_AWAY, KafkaError
from kafka_client.records import build_batch
from mirror.checkpoints.group_offsets import commit_in_target
from mirror.checkpoints.latest import LatestCheckpoints, translated
from mirror.connectors.assignment import ASSIGNED_GROUPS
from mirror.connectors.clients import FlowClients
from mirror.connectors.settings import MirrorCheckpointConfig, flow_of
from mirror.connectors.source_offsets import OFFSET
from mirror.internal_topics import read_internal_topic
from mirror.offsets import read_syncs
from mirror.records.checkpoint import Checkpoint, parse_checkpoint
from mirror.syncs.store import OffsetSyncStore

log = logging.getLogger(__name__)


class MirrorCheckpointTask(BatchSourceTask):
    """Translates offsets of the groups in `task.assigned.groups`."""

    async def start(self, config: Mapping[str, str]) -> None:
        """Read the offset syncs and the checkpoints of earlier runs. Raises MillstreamError."""
        settings = self._settings = flow_of(config, MirrorCheckpointConfig)
        self._groups = [name for name in config[ASSIGNED_GROUPS].split(",") if name]
        self._topic = settings.policy.checkpoints_topic(settings.source.alias)
        self._clients = FlowClients(settings, f"{self.context.connector}-{self.context.task_id}")
        await self._clients.open()
        self._source, self._target = Admin(self._clients.source), Admin(self._clients.target)
        self._latest = LatestCheckpoints()
        await self._read_checkpoints()
        self._store, self._syncs_read = OffsetSyncStore(), 0
        await self._read_syncs()
        self._store.finish_loading()
        self._committed_at = time.monotonic()

    async def poll(self) -> list[RawBatch]:
        """Wait for the interval, then return the new checkpoints of all groups."""
        groups = self._settings.groups
        await asyncio.sleep(groups.emit_checkpoints_interval_seconds)
        try:
            await self._read_syncs()
        except BROKER_AWAY as e:
            raise RetriableError(f"{self._settings.offset_syncs_topic} cannot be read: {e}") from e
        new = [checkpoint for group in self._groups for checkpoint in await self._new(group)]
        self._latest.update(new)
        if groups.sync_offsets:
            await self._commit_when_due()
        return [self._batch(new)] if new else []

    async def stop(self) -> None:
        """Disconnect."""
        clients = getattr(self, "_clients", None)
        if clients is not None:
            await clients.close()

    async def _new(self, group: str) -> list[Checkpoint]:
        try:
            committed = await self._source.list_group_offsets(group)
        except KafkaError as e:
            log.warning("%s: no offsets of group %s: %s", self.context.connector, group, e)
            return []
        return self._latest.new(
            translated(group, committed, self._store.translate, self._settings.copied_topic)
        )

    async def _commit_when_due(self) -> None:
        if time.monotonic() - self._committed_at < self._settings.groups.sync_offsets_interval_seconds:
            return
        self._committed_at = time.monotonic()
        for group in self._groups:
            try:
                await commit_in_target(self._target, group, self._latest.of_group(group))
            except KafkaError as e:
                log.warning("%s: offsets of %s are not committed: %s", self.context.connector, group, e)

    def _batch(self, checkpoints: list[Checkpoint]) -> RawBatch:
        now = int(time.time() * 1000)
        data = build_batch([(now, each.record_key, each.record_value, ()) for each in checkpoints])
        last = checkpoints[-1]
        tp = last.topic_partition
        partition = {"group": last.consumer_group_id, "topic": tp.topic, "partition": tp.partition}
        return RawBatch(self._topic, 0, data, partition, {OFFSET: 0})

    async def _read_syncs(self) -> None:
        """Read the syncs that were written since the last call."""
        topic, start = self._settings.offset_syncs_topic, self._syncs_read or None
        self._syncs_read = await read_syncs(
            self._clients.of_syncs, topic, lambda _, sync: self._store.add(sync), start
        )

    async def _read_checkpoints(self) -> None:
        async for _, _, key, value, _ in read_internal_topic(self._clients.target, self._topic):
            try:
                if key is not None and value is not None:
                    self._latest.update([parse_checkpoint(key, value)])
            except ValueError as e:
                log.warning("%s: a record of %s is skipped: %s", self.context.connector, self._topic, e)
