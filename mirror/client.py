"""Answers questions about a cluster from its mirrors' topics, as Java's MirrorClient does.

    async with Client("dc2:9092") as client:
        offsets = await MirrorClient(client).remote_consumer_offsets("billing", "dc1")

The topics may be those of Kafka's MirrorMaker. Heartbeats show the clusters upstream; checkpoints have the
offsets of groups. Sources: KIP-382, KIP-1239 (many groups at a time).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable

from kafka_client import Admin, Client, OffsetAndMetadata, TopicPartition
from mirror.internal_topics import read_internal_topic
from mirror.policy import DefaultReplicationPolicy, ReplicationPolicy
from mirror.records.checkpoint import Checkpoint, parse_checkpoint

log = logging.getLogger(__name__)

Offsets = dict[TopicPartition, OffsetAndMetadata]
UNREACHABLE = -1


class MirrorClient:
    """Questions about the cluster of `client`. `policy` is the replication policy of its mirrors."""

    def __init__(self, client: Client, policy: ReplicationPolicy | None = None) -> None:
        self._client = client
        self.policy = policy or DefaultReplicationPolicy()

    async def replication_hops(self, upstream: str) -> int:
        """Return the lowest number of flows from the cluster `upstream` to this one, -1 if there is none."""
        ways = [self.policy.upstream_clusters(topic) for topic in await self.heartbeat_topics()]
        return min((way.index(upstream) + 1 for way in ways if upstream in way), default=UNREACHABLE)

    async def heartbeat_topics(self) -> set[str]:
        """Return the topics of heartbeats: this cluster's and copies of others'."""
        return await self._topics(self.policy.is_heartbeats_topic)

    async def checkpoint_topics(self) -> set[str]:
        """Return the topics of checkpoints."""
        return await self._topics(self.policy.is_checkpoints_topic)

    async def upstream_clusters(self) -> set[str]:
        """Return the aliases of the clusters from which heartbeats come, directly or not."""
        topics = await self.heartbeat_topics()
        return {alias for topic in topics for alias in self.policy.upstream_clusters(topic)}

    async def remote_topics(self, source: str | None = None) -> set[str]:
        """Return the topics copied from other clusters, or only those copied from `source` directly."""

        def is_remote(topic: str) -> bool:
            alias = None if self.policy.is_internal_topic(topic) else self.policy.topic_source(topic)
            return alias is not None and source in (None, alias)

        return await self._topics(is_remote)

    async def remote_consumer_offsets(self, group: str, source: str) -> Offsets:
        """Return where a group of the cluster `source` goes on here, by its latest checkpoints.

        Raises KafkaError if there are no checkpoints of the cluster.
        """
        checkpoints = await self.checkpoints(source)
        return _offsets(each for each in checkpoints if each.consumer_group_id == group)

    async def remote_consumer_offsets_of(self, groups: re.Pattern[str], source: str) -> dict[str, Offsets]:
        """Return where each group goes on here whose whole name matches `groups` (KIP-1239).

        Raises KafkaError if there are no checkpoints of the cluster.
        """
        by_group: dict[str, list[Checkpoint]] = {}
        for each in await self.checkpoints(source):
            if groups.fullmatch(each.consumer_group_id):
                by_group.setdefault(each.consumer_group_id, []).append(each)
        return {group: _offsets(checkpoints) for group, checkpoints in by_group.items()}

    async def checkpoints(self, source: str) -> list[Checkpoint]:
        """Return the latest checkpoint of each group and partition of the cluster `source`.

        Records that are no checkpoints are skipped. Raises KafkaError if the topic of checkpoints is missing.
        """
        topic = self.policy.checkpoints_topic(source)
        latest: dict[bytes, Checkpoint] = {}
        async for offset, _, key, value, _ in read_internal_topic(self._client, topic):
            try:
                if key is not None and value is not None:
                    latest[key] = parse_checkpoint(key, value)
            except ValueError as e:
                log.info("record %d of %s is skipped: %s", offset, topic, e)
        return list(latest.values())

    async def _topics(self, is_chosen: Callable[[str], bool]) -> set[str]:
        return set(filter(is_chosen, await Admin(self._client).list_topics()))


def _offsets(checkpoints: Iterable[Checkpoint]) -> Offsets:
    return {
        each.topic_partition: OffsetAndMetadata(each.downstream_offset, each.metadata) for each in checkpoints
    }
