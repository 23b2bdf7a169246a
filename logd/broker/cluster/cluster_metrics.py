"""Metrics that only a broker in a cluster has: of its session, its replicas and their queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kafka_client.metrics.metrics import Metrics, Values

if TYPE_CHECKING:
    from logd.broker.cluster.host import HostBroker
    from logd.broker.cluster.membership import ClusterMembership


class ClusterMetrics:
    """Reads one broker that has been equipped."""

    def __init__(self, broker: HostBroker, membership: ClusterMembership) -> None:
        self._broker = broker
        self._membership = membership

    def add_to(self, metrics: Metrics) -> None:
        """Register everything."""
        metrics.add("kafka.server", "SessionExpireListener", self._session)
        metrics.add("kafka.server", "ReplicaFetcherManager", self._lag, clientId="Replica")
        metrics.add("kafka.server", "LeaderReplication", self._sent)
        metrics.add("kafka.server", "FollowerReplication", self._copied)
        metrics.add_each("millstream", "cluster-updates", self._updates)
        metrics.add("millstream", "isr-changes", self._isr_changes)
        metrics.add("millstream", "replica-fetchers", self._membership.fetchers)
        metrics.add("millstream", "broker-connections", self._membership.member.peers.statistics)
        metrics.add("millstream", "zookeeper", self._zookeeper)

    def _session(self) -> Values:
        statistics = self._membership.session.statistics()
        return {
            "ZooKeeperExpires-total": float(statistics["expires"]),
            "ZooKeeperDisconnects-total": float(statistics["disconnects"]),
        }

    def _zookeeper(self) -> Values:
        statistics = self._membership.session.statistics()
        names = ("in_flight", "in_flight_max", "waiting", "waiting_max", "requests")
        return {name: float(statistics[name]) for name in names}

    def _lag(self) -> Values:
        return {"MaxLag": self._membership.max_lag}

    def _sent(self) -> Values:
        leading = self._broker.leading
        return {"byte-rate": 0.0 if leading is None or leading.quota is None else leading.quota.rate}

    def _copied(self) -> Values:
        return {"byte-rate": self._membership.follower_quota.rate}

    def _isr_changes(self) -> Values:
        leading = self._broker.leading
        return {} if leading is None else leading.isr_changes.statistics()

    def _updates(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        """Yield the statistics of the updates to brokers; only the controller has them."""
        controlling = self._membership.member.if_controlling
        if controlling is not None and controlling.publisher is not None:
            yield {}, controlling.publisher.statistics()
