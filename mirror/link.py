"""One flow between two clusters: its clients, its topics, and the copying, from start to stop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Literal, Self

from logd.client import Admin, Client, OffsetSpec, TopicMetadata, TopicPartition
from logd.errors import BROKER_AWAY, ConfigError, ErrorCode, KafkaError
from mirror.config import LinkSettings
from mirror.errors import PositionUnprovable
from mirror.offsets import NO_ID, OffsetSyncs
from mirror.policy import IdentityReplicationPolicy
from mirror.position import LogEnds, Position, check_sync, resume
from mirror.source import MirrorSource
from mirror.topics import RemoteTopics

log = logging.getLogger(__name__)

STOP_SECONDS = 10
"""How long a stop waits for acks."""


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """How far one partition is. records, bytes: copied by this process; `position` is the source's."""

    remote: TopicPartition
    position: int
    records: int
    bytes: int
    lag_records: int
    lag_seconds: float


class Link:
    """Copies the topics of one flow. `async with Link(settings) as link: await link.run(...)`."""

    def __init__(self, settings: LinkSettings, *, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self._clock = clock
        self._stack = AsyncExitStack()
        self._stopping = asyncio.Event()
        self._refreshed_at = 0.0

    async def open(self) -> Self:
        """Connect, read the offset syncs, make the remote topics and find every partition's position."""
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def run(self, *, until_caught_up: bool = False) -> None:
        """Copy until `stop`; with `until_caught_up` until everything is copied that was there at the call.

        Raises MirrorError when a partition cannot go on, MillstreamError for the clusters' own trouble.
        """
        ends = await self._source_ends(list(self._mirror.copies)) if until_caught_up else None
        copying = asyncio.create_task(self._copy_on(ends))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({copying, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            copying.cancel()  # it may be waiting for a cluster that is away
            await asyncio.gather(copying, return_exceptions=True)
        if not copying.cancelled():
            copying.result()
        await self._settle()

    def stop(self) -> None:
        """Have `run` come to an end, with everything passed on acked."""
        self._stopping.set()

    def status(self) -> Mapping[TopicPartition, PartitionStatus]:
        """Every partition of the flow, by the source's name."""
        now = self._clock()
        return {
            tp: PartitionStatus(c.remote, c.copied, c.records, c.bytes, c.lag_records(), c.lag_seconds(now))
            for tp, c in sorted(self._mirror.copies.items())
        }

    async def close(self) -> None:
        """Disconnect."""
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *exc_info: Any) -> None:
        await self.close()

    async def _open(self) -> None:
        settings, enter = self.settings, self._stack.enter_async_context
        self._source = await enter(
            Client(settings.source.bootstrap_servers, client_id=f"mirror-{settings.name}")
        )
        self._target = await enter(
            Client(settings.target.bootstrap_servers, client_id=f"mirror-{settings.name}")
        )
        await self._check_clusters()
        self._source_admin, self._target_admin = Admin(self._source), Admin(self._target)
        self._topics = RemoteTopics(settings, self._source_admin, self._target_admin)
        holder = self._source if settings.offset_syncs_location == "source" else self._target
        self._syncs = OffsetSyncs(
            holder, settings.offset_syncs_topic, settings.offset_syncs_replication_factor
        )
        await self._syncs.open()
        self._stack.push_async_callback(self._syncs.close)
        self._mirror = MirrorSource(
            self._source,
            self._target,
            self._syncs,
            sync_interval=settings.emit_offset_syncs_interval_seconds,
            clock=self._clock,
        )
        await self._mirror.open()
        self._stack.push_async_callback(self._mirror.close)
        await self._refresh()

    async def _check_clusters(self) -> None:
        """The same names in one and the same cluster would be copied onto themselves, for ever."""
        if not isinstance(self.settings.policy, IdentityReplicationPolicy):
            return
        source, target = await self._source.metadata([]), await self._target.metadata([])
        if source.cluster_id == target.cluster_id:
            raise ConfigError(
                "bootstrap.servers", self.settings.name, "two clusters, for IdentityReplicationPolicy"
            )

    async def _copy_on(self, ends: Mapping[TopicPartition, LogEnds] | None) -> None:
        """Copy until these ends are reached; None: for ever."""
        while True:
            try:
                await self._mirror.copy()
            except KafkaError as e:
                if e.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not await self._let_go_deleted():
                    raise
            if ends is not None and self._mirror.is_at({tp: e.end for tp, e in ends.items()}):
                return
            await self._refresh_when_due()

    async def _settle(self) -> None:
        """Have everything passed on acked; a target that is away is not waited for once asked to stop."""
        try:
            async with asyncio.timeout(STOP_SECONDS if self._stopping.is_set() else None):
                await self._mirror.settle()
        except TimeoutError:
            log.warning(
                "%s: not everything was acked within %d s; the next start finds out",
                self.settings.name,
                STOP_SECONDS,
            )

    async def _let_go_deleted(self) -> bool:
        """Copy partitions no more that the source does not have any longer; whether there were any."""
        topics = await self._source_admin.list_topics()
        gone = [
            tp
            for tp in self._mirror.copies
            if tp.topic not in topics or tp.partition not in topics[tp.topic].partitions
        ]
        if gone:
            await self._mirror.settle()
        for tp in gone:
            remote = self._mirror.copies[tp].remote
            log.warning("%s: %s was deleted in the source; %s stays as it is", self.settings.name, tp, remote)
            self._mirror.remove(tp)
        return bool(gone)

    async def _refresh_when_due(self) -> None:
        settings = self.settings
        waited = self._clock() - self._refreshed_at
        if settings.refresh_topics and waited >= settings.refresh_topics_interval_seconds:
            try:
                await self._refresh()
            except BROKER_AWAY as e:
                log.warning("%s: topics are looked for again later: %s", self.settings.name, e)

    async def _refresh(self) -> None:
        """Take up topics and partitions that are new; SourceRecreated for those that are others now."""
        self._refreshed_at = self._clock()
        topics = await self._topics.chosen()
        ids = {topic.name: topic.topic_id for topic in topics}
        for tp in self._mirror.copies:
            # One made anew with as many records as were copied gives a fetch nothing to notice it by.
            self._mirror.check_topic(tp, ids.get(tp.topic, NO_ID))
        await self._topics.align(topics)
        new = {
            TopicPartition(topic.name, partition): topic
            for topic in topics
            for partition in topic.partitions
            if TopicPartition(topic.name, partition) not in self._mirror.copies
        }
        if not new:
            return
        existing = await self._target_admin.list_topics()
        remote_ids = {name: topic.topic_id for name, topic in existing.items()}
        sources = await self._source_ends(list(new))
        remotes = {tp: TopicPartition(self._topics.name_of(tp.topic), tp.partition) for tp in new}
        targets = await _ends(self._target_admin, list(remotes.values()), "read_uncommitted")
        positions = await asyncio.gather(
            *(
                self._position(tp, remotes[tp], topic, remote_ids, sources[tp], targets[remotes[tp]])
                for tp, topic in new.items()
            )
        )
        for (tp, topic), position in zip(new.items(), positions, strict=True):
            log.info("%s: %s from %d on", self.settings.name, tp, position.upstream)
            remote = remotes[tp]
            remote_id = remote_ids.get(remote.topic, NO_ID)
            self._mirror.add(tp, remote, topic.topic_id, remote_id, position, sources[tp].end)

    async def _position(
        self,
        tp: TopicPartition,
        remote: TopicPartition,
        topic: TopicMetadata,
        remote_ids: Mapping[str, bytes],
        source: LogEnds,
        target: LogEnds,
    ) -> Position:
        sync = self._syncs.latest(tp)
        copied = check_sync(tp, sync, topic.topic_id, remote_ids.get(remote.topic, NO_ID), source, target)
        if sync is None:
            start = source.start if self.settings.auto_offset_reset == "earliest" else source.end
            return Position(start, target.end)
        try:
            return await resume(self._source, self._target, tp, remote, sync, copied, (source, target))
        except PositionUnprovable as e:
            if not await self._is_compacted(tp.topic):
                raise
            # What was copied and compacted away since cannot be counted. Copied again from the sync on, every
            # key still ends with its last value, which is all a compacted topic promises.
            log.warning("%s: copied again from %d on: %s", self.settings.name, sync.next_upstream, e)
            return Position(sync.next_upstream, target.end)

    async def _is_compacted(self, topic: str) -> bool:
        configs = await self._source_admin.describe_configs(topic)
        return "compact" in (configs["cleanup.policy"].value or "")

    async def _source_ends(self, tps: list[TopicPartition]) -> dict[TopicPartition, LogEnds]:
        return await _ends(self._source_admin, tps, "read_committed")


async def _ends(
    admin: Admin, tps: list[TopicPartition], isolation_level: Literal["read_uncommitted", "read_committed"]
) -> dict[TopicPartition, LogEnds]:
    if not tps:
        return {}
    earliest: dict[TopicPartition, OffsetSpec] = dict.fromkeys(tps, "earliest")
    latest: dict[TopicPartition, OffsetSpec] = dict.fromkeys(tps, "latest")
    starts = await admin.list_offsets(earliest)
    ends = await admin.list_offsets(latest, isolation_level=isolation_level)
    return {tp: LogEnds(starts[tp].offset, ends[tp].offset) for tp in tps}
