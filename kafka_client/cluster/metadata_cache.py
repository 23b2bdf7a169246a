"""The cache of metadata, with the age of its entries and one request to the cluster at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from kafka_client.cluster.metadata import (
    BrokerNode,
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
)
from kafka_client.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

IDLE_SECONDS = 300.0
"""How long beyond its largest age an unused topic is remembered (Kafka: metadata.max.idle.ms).

It is longer than a request takes, so that no topic is removed during a request for another.
"""
_EVERY_TOPIC = None
_NEVER = float("-inf")


class _Refresh:
    """A request that is not sent yet; callers until then add topics to it."""

    def __init__(self) -> None:
        self.topics: set[str] | None = set()
        self.task: asyncio.Task[None] | None = None

    def widen(self, topics: Iterable[str] | None) -> None:
        if topics is _EVERY_TOPIC:
            self.topics = _EVERY_TOPIC
        elif self.topics is not None:
            self.topics.update(topics)


class MetadataCache:
    """The latest metadata of topics and brokers, with the time of its response.

    `ask(topics)` sends the request to a broker (None: every topic). `clock` returns seconds, monotonic. At
    most one request is in flight and one waits, for any number of callers. Topics that nobody has requested
    for long are removed.
    """

    def __init__(
        self,
        ask: Callable[[set[str] | None], Awaitable[MetadataResponse]],
        *,
        max_age: float,
        clock: Callable[[], float],
    ) -> None:
        self._ask = ask
        self._max_age = max_age
        self._clock = clock
        self._lock = asyncio.Lock()
        self._queued: _Refresh | None = None
        self._valid_from = _NEVER
        self._topics: dict[str, TopicMetadata] = {}
        self._topics_at: dict[str, float] = {}
        self._all_at = _NEVER
        self._brokers_at = _NEVER
        self.errors: dict[str, int] = {}
        """The errors of topics that were requested lately: name → error code."""
        self._errors_at: dict[str, float] = {}
        self.cluster = ClusterMetadata()
        """All cached metadata; `topics` has the topics that were requested so far."""

    @property
    def remembered(self) -> int:
        """The number of topics with cached metadata or errors."""
        return len(self._topics) + len(self.errors)

    def invalidate(self) -> None:
        """Treat all cached entries as stale; they can still be used as a guess."""
        self._valid_from = self._clock()

    def is_fresh(self, topic: str) -> bool:
        """Return True if the topic's cached metadata is fresh."""
        return self._topics_at.get(topic, _NEVER) > self._oldest()

    def stale(self, topics: Iterable[str] | None) -> tuple[bool, set[str] | None]:
        """Return True if a request is necessary for `topics`, and the topics to request (None: every
        topic).
        """
        oldest = self._oldest()
        if topics is _EVERY_TOPIC:
            return self._all_at <= oldest, _EVERY_TOPIC
        names = {name for name in topics if self._topics_at.get(name, _NEVER) <= oldest}
        return bool(names) or self._brokers_at <= oldest, names

    def select(self, topics: Iterable[str] | None) -> ClusterMetadata:
        """Return the cached metadata of the named topics (None: every topic)."""
        cached = self.cluster
        if topics is _EVERY_TOPIC:
            return cached
        chosen = {name: cached.topics[name] for name in topics if name in cached.topics}
        return ClusterMetadata(cached.cluster_id, cached.controller_id, cached.brokers, chosen)

    def _oldest(self) -> float:
        return max(self._clock() - self._max_age, self._valid_from)

    async def refresh(self, topics: Iterable[str] | None) -> None:
        """Send a request now; callers that wait for the same request share it."""
        queued = self._queued
        if queued is None:
            queued = self._queued = _Refresh()
            queued.task = asyncio.create_task(self._run(queued), name="metadata-refresh")
            queued.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        queued.widen(topics)
        assert queued.task is not None
        await asyncio.shield(queued.task)

    async def _run(self, refresh: _Refresh) -> None:
        async with self._lock:
            self._queued = None
            asked_at = self._clock()
            response = await self._ask(refresh.topics)
            self._store(response, refresh.topics, asked_at)

    def _store(self, response: MetadataResponse, requested: set[str] | None, now: float) -> None:
        if requested is _EVERY_TOPIC:
            self._topics, self._topics_at, self._all_at = {}, {}, now
            self.errors, self._errors_at = {}, {}
        for topic in response.topics:
            name = topic.name or ""
            if topic.error_code:
                self._topics.pop(name, None)
                self._topics_at.pop(name, None)
                self.errors[name] = topic.error_code
                self._errors_at[name] = now
            else:
                self._topics[name] = _keep_newer(self._topics.get(name), topic)
                self._topics_at[name] = now
                self.errors.pop(name, None)
                self._errors_at.pop(name, None)
        self._forget_idle(now)
        self._brokers_at = now
        self.cluster = ClusterMetadata(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            brokers={b.node_id: BrokerNode(b.node_id, b.host, b.port, b.rack) for b in response.brokers},
            topics=dict(self._topics),
        )

    def _forget_idle(self, now: float) -> None:
        oldest = now - self._max_age - IDLE_SECONDS
        for name in [name for name, at in self._topics_at.items() if at < oldest]:
            del self._topics_at[name], self._topics[name]
        for name in [name for name, at in self._errors_at.items() if at < oldest]:
            del self._errors_at[name], self.errors[name]


def _keep_newer(cached: TopicMetadata | None, reported: MetadataResponseTopic) -> TopicMetadata:
    """Return the reported topic, but keep cached partitions that have a newer leader epoch (KIP-320)."""
    partitions = {}
    same = cached is not None and cached.topic_id == reported.topic_id
    for p in reported.partitions:
        new = PartitionMetadata(
            p.partition_index,
            p.leader_id,
            p.leader_epoch,
            tuple(p.replica_nodes),
            tuple(p.isr_nodes),
            tuple(p.offline_replicas),
        )
        old = cached.partitions.get(p.partition_index) if same and cached is not None else None
        stale = old is not None and 0 <= new.leader_epoch < old.leader_epoch
        partitions[p.partition_index] = old if stale and old is not None else new
    return TopicMetadata(reported.name or "", reported.topic_id, partitions, reported.is_internal)
