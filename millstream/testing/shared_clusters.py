"""The clusters of a test run.

Each is lent to a test, cleaned, and lent to the next with the same number of brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millstream.testing.cluster import Cluster
from millstream.testing.zookeeper import ZooKeeper

IDLE_BROKERS_MAX = 6
"""The maximum of idle brokers kept for the next tests; each is a process of some 60 MB."""


class SharedClusters:
    """The clusters of a test run on one ZooKeeper, with a path for each. Call `stop` at the end.

    ZooKeeper starts with the first cluster. `config`: Kafka's keys for the brokers of all clusters.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        self._config = config
        self._zookeeper = ZooKeeper()
        self._made = 0
        self._idle: list[Cluster] = []
        self._lent: dict[Cluster, bool] = {}
        """The lent clusters, with True for those that can be lent again."""

    def lend(self, nodes: int, config: Mapping[str, object] | None, own: bool) -> Cluster:
        """Return an empty cluster.

        With `config` or `own` it is for one test only. Raises BrokerError if it does not start.
        """
        is_shared = config is None and not own
        cluster = self._idle_cluster(nodes) if is_shared else None
        if cluster is None:
            cluster = self._started(nodes, config or {})
        self._lent[cluster] = is_shared
        return cluster

    def _idle_cluster(self, nodes: int) -> Cluster | None:
        """Return an idle cluster of this size, cleaned, or None."""
        for cluster in self._idle:
            if len(cluster.brokers) == nodes:
                self._idle.remove(cluster)
                cluster.clean()
                return cluster
        return None

    def _started(self, nodes: int, config: Mapping[str, object]) -> Cluster:
        if not self._made:
            self._zookeeper.start()
        self._made += 1
        path = f"{self._zookeeper.connect_string}/cluster-{self._made}"
        return Cluster(nodes, {**self._config, **config}, zookeeper=path).start()

    def give_back(self, cluster: Cluster) -> None:
        """Take a cluster back after a test: keep it for the next test, or stop it."""
        if not self._lent.pop(cluster):
            cluster.stop()
            return
        self._idle.append(cluster)
        while sum(len(each.brokers) for each in self._idle) > IDLE_BROKERS_MAX:
            self._idle.pop(0).stop()

    def stop(self) -> None:
        """Stop all clusters and ZooKeeper."""
        for cluster in [*self._idle, *self._lent]:
            cluster.stop()
        self._zookeeper.stop()


class ClusterLoans:
    """The fixture `millstream_cluster`, which is called for a cluster.

    `give_back` returns all clusters at the end of the test. `lent` is called with each cluster.
    """

    def __init__(self, shared: SharedClusters, lent: Callable[[Cluster], None]) -> None:
        self._shared = shared
        self._lent = lent
        self._clusters: list[Cluster] = []

    def __call__(
        self, nodes: int = 3, config: Mapping[str, object] | None = None, *, own: bool = False
    ) -> Cluster:
        """Return an empty running cluster of `nodes` brokers, another one for each call of a test.

        `config`: Kafka's keys for a cluster of the test's own; `own`: a cluster that no other test uses.
        Raises BrokerError if it does not start, such as without Java or the extra `spark`.
        """
        cluster = self._shared.lend(nodes, config, own)
        self._clusters.append(cluster)
        self._lent(cluster)
        return cluster

    def give_back(self) -> None:
        """Return all clusters at the end of the test."""
        for cluster in self._clusters:
            self._shared.give_back(cluster)
