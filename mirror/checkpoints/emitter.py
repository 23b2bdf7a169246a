"""Reads the committed offsets of the source's groups. Writes checkpoints and commits offsets in the target.

A failure delays the groups' offsets and never the copy of records: it is logged, and the work is repeated at
its next interval.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from kafka_client import NO_TIMEOUT_MS, Admin, BatchProducer, Client
from kafka_client.errors import KafkaError, MillstreamError
from mirror.checkpoints.group_offsets import commit_in_target
from mirror.checkpoints.groups import find_groups
from mirror.checkpoints.latency import CheckpointLatency
from mirror.checkpoints.latest import LatestCheckpoints, translated
from mirror.config import LinkSettings
from mirror.internal_topics import create_internal_topic, read_internal_topic
from mirror.records.checkpoint import Checkpoint, parse_checkpoint
from mirror.syncs.store import OffsetSyncStore

log = logging.getLogger(__name__)

CLOSE_MS = 5_000


class GroupCheckpoints:
    """The checkpoints of one flow. Call `run`, or `emit` for a single round; `close` at the end."""

    def __init__(
        self,
        settings: LinkSettings,
        source: Client,
        target: Client,
        store: OffsetSyncStore,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._source, self._target = Admin(source), target
        self._target_admin = Admin(target)
        self._topic = settings.policy.checkpoints_topic(settings.source.alias)
        self._producer = BatchProducer(target, delivery_timeout_ms=NO_TIMEOUT_MS)
        self._opening, self._emitting = asyncio.Lock(), asyncio.Lock()
        self._is_open = False
        self._latest = LatestCheckpoints()
        self.latency = CheckpointLatency()
        self._groups: set[str] | None = None
        """The groups with offsets in copied topics, None before they were looked for."""

    async def run(self) -> None:
        """Work until cancelled, each part at its interval."""
        groups = self._settings.groups
        work = []
        # Not at once: the first syncs after a start translate offsets less exactly than those that follow.
        if groups.emit_checkpoints:
            seconds = groups.emit_checkpoints_interval_seconds
            work.append(self._every(seconds, self.emit, delay=seconds))
        if groups.sync_offsets:
            seconds = groups.sync_offsets_interval_seconds
            work.append(self._every(seconds, self.sync_offsets, delay=seconds))
        if groups.refresh:
            work.append(self._every(groups.refresh_interval_seconds, self.refresh_groups))
        async with asyncio.TaskGroup() as tasks:
            for each in work:
                tasks.create_task(each)

    async def refresh_groups(self) -> None:
        """Look for the source's groups that pass the filters."""
        await self._open()
        chosen = await find_groups(self._source, self._settings.groups.groups, self._settings.copied_topic)
        if chosen != self._groups:
            log.info("%s: checkpoints of %d groups", self._settings.name, len(chosen))
        self._groups = chosen
        self.latency.keep_groups(chosen)

    async def emit(self) -> None:
        """Write the checkpoints that are new for the groups' committed offsets."""
        if self._groups is None:
            await self.refresh_groups()
        async with self._emitting:
            for group in sorted(self._groups or ()):
                try:
                    committed = await self._source.list_group_offsets(group)
                except KafkaError as e:
                    log.warning("%s: no offsets of group %s: %s", self._settings.name, group, e)
                    continue
                checkpoints = translated(group, committed, self._store.translate, self._settings.copied_topic)
                self.latency.keep_partitions(group, [each.topic_partition for each in checkpoints])
                await self._write(self._latest.new(checkpoints))

    async def sync_offsets(self) -> None:
        """Commit the latest checkpoints' offsets in the target, for groups without members there."""
        await self.emit()
        for group in sorted(self._groups or ()):
            try:
                await commit_in_target(self._target_admin, group, self._latest.of_group(group))
            except KafkaError as e:
                log.warning("%s: offsets of group %s are not committed: %s", self._settings.name, group, e)

    async def emit_last(self) -> None:
        """Do a last round after everything was copied. An error is only logged."""
        try:
            await (self.sync_offsets() if self._settings.groups.sync_offsets else self.emit())
        except MillstreamError as e:
            log.warning("%s: the last checkpoints are missing: %s", self._settings.name, e)

    async def close(self) -> None:
        """Stop. Checkpoints that were not acknowledged are written again after the next start."""
        if self._is_open:
            await self._producer.close(timeout_ms=CLOSE_MS)

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]], *, delay: float = 0) -> None:
        await asyncio.sleep(delay)
        while True:
            try:
                await work()
            except MillstreamError as e:
                log.warning("%s: no checkpoints, trying again in %.0f s: %s", self._settings.name, seconds, e)
            await asyncio.sleep(seconds)

    async def _open(self) -> None:
        """Create the topic and read the checkpoints of earlier runs, once."""
        async with self._opening:
            if self._is_open:
                return
            if self._settings.groups.emit_checkpoints:
                factor = self._settings.groups.checkpoints_replication_factor
                key = "checkpoints.topic.replication.factor"
                await create_internal_topic(self._target, self._topic, factor, key)
                async for _, _, record_key, value, _ in read_internal_topic(self._target, self._topic):
                    if record_key is not None and value is not None:
                        self._take(record_key, value)
            await self._producer.start()
            self._is_open = True

    def _take(self, key: bytes, value: bytes) -> None:
        try:
            self._latest.update([parse_checkpoint(key, value)])
        except ValueError as e:
            log.warning("%s: a record of %s is skipped: %s", self._settings.name, self._topic, e)

    async def _write(self, checkpoints: list[Checkpoint]) -> None:
        if checkpoints and self._settings.groups.emit_checkpoints:
            now = int(self._clock() * 1000)
            records = [(now, each.record_key, each.record_value, ()) for each in checkpoints]
            await (await self._producer.send(self._topic, 0, records))
            self.latency.record(checkpoints, self._clock() * 1000 - now)
        self._latest.update(checkpoints)
