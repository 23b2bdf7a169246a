"""The clusters of a test run: lent to a test, cleaned, and lent to the next that wants as many brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millstream.testing.cluster import Cluster
from millstream.testing.zookeeper import ZooKeeper

IDLE_BROKERS_MAX = 6
"""So many brokers are kept for the next test; each is a process of some 60 MB."""


class SharedClusters:
    """One ZooKeeper for all of them, with a path for each; it starts with the first. Call `stop` in the end.

    `config`: Kafka's keys for the brokers of all clusters.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        self._config = config
        self._zookeeper = ZooKeeper()
        self._made = 0
        self._idle: list[Cluster] = []
        self._lent: dict[Cluster, bool] = {}
        """And whether it may be lent again."""

    def lend(self, nodes: int, config: Mapping[str, object] | None, own: bool) -> Cluster:
        """A cluster with nothing in it. With `config` or `own` it is for one test. BrokerError."""
        is_shared = config is None and not own
        cluster = self._idle_one(nodes) if is_shared else None
        if cluster is None:
            cluster = self._started(nodes, config or {})
        self._lent[cluster] = is_shared
        return cluster

    def _idle_one(self, nodes: int) -> Cluster | None:
        """One of this size, cleaned."""
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
        """A test is done with it."""
        if not self._lent.pop(cluster):
            cluster.stop()
            return
        self._idle.append(cluster)
        while sum(len(each.brokers) for each in self._idle) > IDLE_BROKERS_MAX:
            self._idle.pop(0).stop()

    def stop(self) -> None:
        """Stop all."""
        for cluster in [*self._idle, *self._lent]:
            cluster.stop()
        self._zookeeper.stop()


class ClusterLoans:
    """The fixture `millstream_cluster`: call it for a cluster; `give_back` all with the end of the test.

    `lent` is told of each.
    """

    def __init__(self, shared: SharedClusters, lent: Callable[[Cluster], None]) -> None:
        self._shared = shared
        self._lent = lent
        self._clusters: list[Cluster] = []

    def __call__(
        self, nodes: int = 3, config: Mapping[str, object] | None = None, *, own: bool = False
    ) -> Cluster:
        """A running cluster of so many brokers with nothing in it; another one with each call of a test.

        `config`: Kafka's keys for a cluster of the test's own; `own`: one that no other test has had or gets.
        BrokerError where it does not start, such as without Java or the extra `spark`.
        """
        cluster = self._shared.lend(nodes, config, own)
        self._clusters.append(cluster)
        self._lent(cluster)
        return cluster

    def give_back(self) -> None:
        """The test is over."""
        for cluster in self._clusters:
            self._shared.give_back(cluster)
