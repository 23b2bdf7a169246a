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
from logd.errors import ConfigError
from mirror.config import LinkSettings
from mirror.offsets import OffsetSyncs
from mirror.policy import IdentityReplicationPolicy
from mirror.position import LogEnds, Position, check_sync, resume
from mirror.source import MirrorSource
from mirror.topics import RemoteTopics

log = logging.getLogger(__name__)


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
        ends = await self._source_ends(list(self._mirror.copies)) if until_caught_up else {}
        while not self._stopping.is_set():
            await self._mirror.copy()
            if until_caught_up and self._mirror.is_at({tp: e.end for tp, e in ends.items()}):
                break
            await self._refresh_when_due()
        await self._mirror.settle()

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

    async def _refresh_when_due(self) -> None:
        settings = self.settings
        waited = self._clock() - self._refreshed_at
        if settings.refresh_topics and waited >= settings.refresh_topics_interval_seconds:
            await self._refresh()

    async def _refresh(self) -> None:
        """Take up topics and partitions that are new."""
        self._refreshed_at = self._clock()
        topics = await self._topics.chosen()
        await self._topics.align(topics)
        new = {
            TopicPartition(topic.name, partition): topic
            for topic in topics
            for partition in topic.partitions
            if TopicPartition(topic.name, partition) not in self._mirror.copies
        }
        if not new:
            return
        sources = await self._source_ends(list(new))
        remotes = {tp: TopicPartition(self._topics.name_of(tp.topic), tp.partition) for tp in new}
        targets = await _ends(self._target_admin, list(remotes.values()), "read_uncommitted")
        positions = await asyncio.gather(
            *(
                self._position(tp, remotes[tp], topic, sources[tp], targets[remotes[tp]])
                for tp, topic in new.items()
            )
        )
        for (tp, topic), position in zip(new.items(), positions, strict=True):
            log.info("%s: %s from %d on", self.settings.name, tp, position.upstream)
            self._mirror.add(tp, remotes[tp], topic.topic_id, position, sources[tp].end)

    async def _position(
        self,
        tp: TopicPartition,
        remote: TopicPartition,
        topic: TopicMetadata,
        source: LogEnds,
        target: LogEnds,
    ) -> Position:
        sync = self._syncs.latest(tp)
        copied = check_sync(tp, sync, topic.topic_id, source, target)
        if sync is None:
            start = source.start if self.settings.auto_offset_reset == "earliest" else source.end
            return Position(start, target.end)
        return await resume(self._source, self._target, tp, remote, sync, copied, (source, target))

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
