"""The fetchers of this broker: one for each broker that leads something it follows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafka_client.topic_partition import TopicPartition
from logd.broker.cluster.replication.followed_partition import FollowedPartition
from logd.broker.cluster.replication.replica_fetcher import ReplicaFetcher


class ReplicaFetchers:
    """`make` makes the fetcher of a leader, which stays until `stop`: leaders come back."""

    def __init__(self, make: Callable[[int], ReplicaFetcher]) -> None:
        self._make = make
        self._by_leader: dict[int, ReplicaFetcher] = {}
        self._leaders: dict[TopicPartition, int] = {}

    def follow(self, following: FollowedPartition) -> None:
        """Copy a partition from the leader its core names, and from no other."""
        leader, tp = following.core.leader, following.tp
        if self._leaders.get(tp, leader) != leader:
            self.unfollow(tp)
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = self._make(leader)
        self._leaders[tp] = leader
        fetcher.follow(following)

    def unfollow(self, tp: TopicPartition) -> None:
        """Copy it no more."""
        leader = self._leaders.pop(tp, None)
        if leader is not None:
            self._by_leader[leader].unfollow(tp)

    async def rest(self, tp: TopicPartition) -> None:
        """Wait until nothing that was begun for the partition is under way; it is followed no more."""
        await asyncio.gather(*(fetcher.rest(tp) for fetcher in self._by_leader.values()))

    def following(self, tp: TopicPartition) -> FollowedPartition | None:
        """Return how the partition is followed, or None if it is not."""
        leader = self._leaders.get(tp)
        return None if leader is None else self._by_leader[leader].following.get(tp)

    async def stop(self) -> None:
        """Copy nothing any more."""
        await asyncio.gather(*(fetcher.stop() for fetcher in self._by_leader.values()))

    @property
    def max_lag(self) -> int:
        """The records by which the slowest replica is behind its leader's high watermark."""
        fetchers = self._by_leader.values()
        return max((each.lag for fetcher in fetchers for each in fetcher.following.values()), default=0)

    def statistics(self) -> dict[str, int]:
        """Return the counts of fetchers, one per leader, and of the partitions that they follow."""
        return {"fetchers": len(self._by_leader), "following": len(self._leaders)}
