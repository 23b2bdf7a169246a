"""Runs one flow between two clusters: opens clients and topics, copies, and stops.

Four tasks run: one copies, one looks for new topics and retries quarantined partitions, one checks for
missing acknowledgements. The fourth asks the source for its ends and reports what stands still. Two more
write checkpoints of consumer groups and heartbeats, if they are enabled. A partition that cannot be copied is
quarantined while the others go on.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Self

from kafka_client import Admin, Client, TopicMetadata, TopicPartition
from kafka_client.errors import BROKER_AWAY, ConfigError
from kafka_client.metrics.metrics import Metrics, Values
from mirror.checkpoints.emitter import GroupCheckpoints
from mirror.claims import Claims
from mirror.config import Cluster, LinkSettings
from mirror.discontinuities import check_remote_topic
from mirror.errors import MirrorError, NotAligned
from mirror.heartbeats import Heartbeats
from mirror.link_metrics import LinkMetrics
from mirror.offsets import NO_ID, OffsetSyncs
from mirror.progress import ProgressWatch
from mirror.quarantine import Quarantine, Quarantined
from mirror.source import MirrorSource
from mirror.start_positions import Placed, Placing
from mirror.status import PartitionStatus, statuses, worst_rpo
from mirror.syncs.store import OffsetSyncStore
from mirror.topics import RemoteTopics
from mirror.unreadable import UnreadableSkips

log = logging.getLogger(__name__)

STOP_SECONDS = 10
"""How long a stop waits for acknowledgements."""
TEND_SECONDS = 0.25
"""Interval of the checks for due retries and topic refreshes."""
_ANY_TOPIC = "topic"
WATCH_SECONDS = 1.0
"""Interval of the checks for missing acknowledgements."""


class Link:
    """A running flow: `async with Link(settings) as link: await link.run(...)`.

    `metrics` is the registry of the link's and its clients' metrics, by default a new one.
    """

    def __init__(
        self,
        settings: LinkSettings,
        *,
        clock: Callable[[], float] = time.time,
        metrics: Metrics | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = metrics or Metrics()
        self._clock = clock
        self._stack = AsyncExitStack()
        self._stopping = asyncio.Event()
        self.step = ""
        """The step of `open` that is under way."""
        self._refreshed_at = 0.0
        self._quarantine = Quarantine(random.random)
        self._unplaced: set[TopicPartition] = set()
        """Partitions of the source that are neither copied nor quarantined yet."""
        self._ends: dict[TopicPartition, int] = {}
        """End of each source partition when its position was first computed, or when `run` was called."""
        self._behind: set[TopicPartition] = set()
        """Partitions not yet known to be copied up to `_ends`."""

    async def open(self) -> Self:
        """Connect, read the offset syncs, create the remote topics and compute every partition's position.

        Raises MillstreamError if a cluster fails; the error of one partition goes to `quarantined`.
        """
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def run(self, *, until_caught_up: bool = False) -> None:
        """Copy until `stop`. With `until_caught_up`, stop after the records that existed at the call.

        Raises MillstreamError if a cluster fails. With `until_caught_up`, raises the error of a partition
        that is still quarantined when the others are done.
        """
        if until_caught_up:
            self._ends |= await self._placing.source_ends(self._mirror.copies)
            self._behind |= self._mirror.copies.keys()
        work = [
            self._copy_on(until_caught_up),
            self._tend(),
            self._watch(),
            self.progress.run(),
            self._stopped(),
        ]
        if self.settings.groups.enabled:
            work.append(self._checkpoints.run())
        if self.settings.emit_heartbeats:
            work.append(Heartbeats(self.settings, self._source, clock=self._clock).run())
        tasks = [asyncio.create_task(each) for each in work]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = [task for task in tasks if task.done()]
            for task in tasks:
                task.cancel()  # it may be waiting for an unreachable cluster
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in ended:
            task.result()
        await self._drain()
        if until_caught_up and self.settings.groups.enabled:
            await self._checkpoints.emit_last()
        if until_caught_up and self.quarantined:
            raise min(self.quarantined.items())[1].error

    def stop(self) -> None:
        """End `run` once the target has acknowledged everything sent, or after `STOP_SECONDS`."""
        self._stopping.set()

    def status(self) -> Mapping[TopicPartition, PartitionStatus]:
        """Return the progress of every copied partition, by source partition."""
        return statuses(self._mirror.copies, self.progress.stalls.stalled, self._clock())

    @property
    def skips(self) -> UnreadableSkips:
        """The unreadable batches that were skipped since `open`."""
        return self._skips

    @property
    def quarantined(self) -> Mapping[TopicPartition, Quarantined]:
        """The quarantined partitions, by source partition."""
        return self._quarantine.partitions

    def rpo_seconds(self) -> float | None:
        """Return a bound of what a failover loses now: at most the records of so many seconds.

        It is that of the worst partition, and None if that of one is unknown, as of those not copied now.
        """
        if self._unplaced or self.quarantined:
            return None
        now = self._clock()
        return worst_rpo(copy.rpo_seconds(now) for copy in list(self._mirror.copies.values()))

    @property
    def waiting(self) -> Set[TopicPartition]:
        """The source's partitions that have no position yet."""
        return self._unplaced

    def synced_position(self, tp: TopicPartition) -> int | None:
        """Return the source offset up to which the last offset sync says that records are copied."""
        sync = self._syncs.latest(tp)
        return None if sync is None else sync.next_upstream

    async def close(self) -> None:
        """Disconnect."""
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *exc_info: Any) -> None:
        await self.close()

    async def _open(self) -> None:
        settings, enter = self.settings, self._stack.enter_async_context
        self.step = f"connecting to {settings.source.alias}"
        self._source = await enter(_client(settings.source, settings.name, self.metrics))
        self.step = f"connecting to {settings.target.alias}"
        self._target = await enter(_client(settings.target, settings.name, self.metrics))
        await self._check_clusters()
        self._source_admin, self._target_admin = Admin(self._source), Admin(self._target)
        self._topics = RemoteTopics(settings, self._source_admin, self._target_admin)
        holder = self._source if settings.offset_syncs_location == "source" else self._target
        store = OffsetSyncStore()
        self._syncs = OffsetSyncs(
            holder,
            settings.offset_syncs_topic,
            settings.offset_syncs_replication_factor,
            on_sync=store.add if settings.groups.enabled else None,
        )
        self.step = f"creating and reading {settings.offset_syncs_topic}"
        await self._syncs.open()
        store.finish_loading()
        self._stack.push_async_callback(self._syncs.close)
        self._checkpoints = GroupCheckpoints(settings, self._source, self._target, store, clock=self._clock)
        self._stack.push_async_callback(self._checkpoints.close)
        self._skips = UnreadableSkips(settings.skip_unreadable)
        self._placing = Placing(settings, self._source, self._target, self._syncs, self._skips)
        self._mirror = MirrorSource(
            self._source,
            self._target,
            self._syncs,
            sync_interval=settings.emit_offset_syncs_interval_seconds,
            offset_lag_max=settings.offset_lag_max if settings.emit_offset_syncs else None,
            clock=self._clock,
            on_failure=self._failed,
            skips=self._skips,
            claims=partial(Claims, holder, self._syncs),
        )
        self.step = f"getting a producer id of {settings.target.alias}"
        await self._mirror.open()
        self._stack.push_async_callback(self._mirror.close)
        self.progress = ProgressWatch(settings.name, self._source, self._mirror, self._clock)
        link_metrics = LinkMetrics(
            self._mirror,
            self._quarantine,
            self._placings,
            self.progress,
            self._checkpoints.latency,
            self.rpo_seconds,
            self._clock,
        )
        aliases = {"source": settings.source.alias, "target": settings.target.alias}
        self._stack.callback(link_metrics.add_to(self.metrics, **aliases))
        self.step = "creating remote topics and computing positions"
        await self._refresh()

    async def _check_clusters(self) -> None:
        """Raise ConfigError if topics would be copied onto themselves: same cluster, same names."""
        if self.settings.remote_topic(_ANY_TOPIC) != _ANY_TOPIC:
            return
        source, target = await self._source.metadata([]), await self._target.metadata([])
        if source.cluster_id == target.cluster_id:
            raise ConfigError(
                "bootstrap.servers", self.settings.name, "two clusters, for a policy that keeps names"
            )

    # --- the tasks ---

    async def _copy_on(self, until_caught_up: bool) -> None:
        while True:
            await self._mirror.copy()
            for tp in self._quarantine.on_probation():
                if (copy := self._mirror.copies.get(tp)) is not None and copy.records:
                    self._quarantine.forget(tp)
            if until_caught_up and self._is_caught_up():
                return

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(TEND_SECONDS)
            try:
                await self._retry_due()
                await self._refresh_when_due()
            except BROKER_AWAY as e:
                log.warning("%s: could not look for topics, trying again later: %s", self.settings.name, e)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            self._mirror.fail_unacked()

    async def _stopped(self) -> None:
        await self._stopping.wait()

    def _is_caught_up(self) -> bool:
        if not self._quarantine.all_given_up:
            return False
        while self._behind:
            tp = next(iter(self._behind))
            if tp in self._mirror.copies and not self._mirror.is_at(tp, self._ends[tp]):
                return False
            self._behind.discard(tp)
        return True

    async def _drain(self) -> None:
        """Wait until the target has acknowledged everything sent; after `stop`, at most `STOP_SECONDS`."""
        try:
            async with asyncio.timeout(STOP_SECONDS if self._stopping.is_set() else None):
                await self._mirror.drain()
        except TimeoutError:
            log.warning(
                "%s: not everything was acked within %d s; the next start checks what was appended",
                self.settings.name,
                STOP_SECONDS,
            )

    # --- adding and removing partitions ---

    def _placings(self) -> Values:
        """Return the metrics of placing.

        waiting: new partitions without a position; see `Placing.statistics`.
        """
        return {"waiting": len(self._unplaced), **self._placing.statistics()}

    def _failed(self, error: MirrorError) -> None:
        self._unplaced.discard(error.tp)
        now = self._clock()
        entry = self._quarantine.put(error, now)
        log.warning(
            "%s: quarantined, again in %.0f s: %s: %s",
            self.settings.name,
            entry.retry_at - now,
            entry.reason,
            error,
        )

    async def _refresh_when_due(self) -> None:
        settings = self.settings
        waited = self._clock() - self._refreshed_at
        if settings.refresh_topics and waited >= settings.refresh_topics_interval_seconds:
            await self._refresh()

    async def _refresh(self) -> None:
        """Start copying new topics and partitions. Fail those whose topic was deleted and created again."""
        self._refreshed_at = self._clock()
        await self._mirror.follow_claims()
        topics = {topic.name: topic for topic in await self._topics.chosen()}
        remote_topics = await self._target_admin.list_topics()
        for tp, copy in list(self._mirror.copies.items()):
            # A fetch does not notice a topic that was created again and has as many records as were copied.
            # An idle copy sends nothing, and so does not notice that its remote topic was deleted.
            try:
                topic = topics.get(tp.topic)
                self._mirror.check_topic(tp, NO_ID if topic is None else topic.topic_id)
                check_remote_topic(tp, copy.remote.topic, copy.remote_topic_id, remote_topics)
            except MirrorError as e:
                self._mirror.fail(e)
        partitions = [TopicPartition(name, p) for name, topic in topics.items() for p in topic.partitions]
        current = self._mirror.copies.keys() | self.quarantined.keys()
        self._unplaced = {tp for tp in partitions if tp not in current}
        await self._start_copying(sorted(self._unplaced), topics, topics, remote_topics)

    async def _retry_due(self) -> None:
        """Retry the quarantined partitions that are due; forget those that the source no longer has."""
        due = [
            tp
            for tp in self._quarantine.due(self._clock())
            if self._mirror.can_add(self._placing.remote_of(tp))
        ]
        if not due:
            return
        topics = {topic.name: topic for topic in await self._topics.chosen()}
        existing = [tp for tp in due if tp.topic in topics and tp.partition in topics[tp.topic].partitions]
        for tp in due:
            if tp not in existing:
                self._forget(tp)
                remote = self._placing.remote_of(tp)
                log.warning(
                    "%s: %s was deleted in the source; %s is not changed", self.settings.name, tp, remote
                )
        remote_topics = await self._target_admin.list_topics()
        await self._start_copying(existing, topics, {tp.topic for tp in existing}, remote_topics)

    def _forget(self, tp: TopicPartition) -> None:
        self._quarantine.forget(tp)
        self._placing.forget(tp)
        self._ends.pop(tp, None)
        self._behind.discard(tp)

    async def _start_copying(
        self,
        tps: Iterable[TopicPartition],
        topics: Mapping[str, TopicMetadata],
        aligned: Iterable[str],
        remote_topics: Mapping[str, TopicMetadata],
    ) -> None:
        """Give the remote topics of `aligned` their partitions and configs, then start to copy `tps`.

        Copying a partition begins as soon as its position is known. A remote topic that was deleted with
        copied records is not created again.
        """
        partitions = list(tps)
        lost = self._placing.check_remotes([topics[name] for name in aligned], remote_topics)
        for tp in partitions:
            if (error := lost.get(tp.topic)) is not None:
                self._failed(type(error)(tp, error.what))
        refused = await self._topics.align([topics[name] for name in aligned if name not in lost])
        for name, why in refused.items():
            log.warning("%s: the remote topic of %s could not be aligned: %s", self.settings.name, name, why)
        for tp in partitions:
            if tp.topic in refused:
                self._failed(NotAligned(tp, str(refused[tp.topic])))
        await self._placing.place(
            [tp for tp in partitions if tp.topic not in refused and tp.topic not in lost],
            topics,
            await self._target_admin.list_topics() if partitions else {},
            on_placed=self._placed,
            on_failure=self._failed,
        )

    def _placed(self, placed: Placed) -> None:
        tp, position = placed.tp, placed.position
        log.info("%s: copying %s from offset %d on", self.settings.name, tp, position.upstream)
        self._unplaced.discard(tp)
        self._ends.setdefault(tp, placed.end)
        self._behind.add(tp)
        self._quarantine.release(tp)
        self._mirror.add(tp, placed.remote, placed.topic_id, placed.remote_topic_id, position, placed.end)


def _client(cluster: Cluster, link: str, metrics: Metrics) -> Client:
    named = {"client_id": f"mirror-{link}", **cluster.client}
    return Client(cluster.bootstrap_servers, metrics=metrics, **named)
