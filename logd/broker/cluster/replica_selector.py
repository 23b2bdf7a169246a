"""The replica that a consumer fetches from in place of the leader: the one in its rack (KIP-392).

It implements `replica.selector.class`. The leader names a follower in sync that has the records the consumer
asks for. From then on the consumer asks that follower, until its metadata is old or the request is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logd.broker.cluster.replication.led_partitions import LedPartitions
    from logd.broker.partition.partition import Partition
    from logd.broker.topics.cluster_view import ClusterView, Node
    from logd.config.listeners import Endpoint
    from logd.replication import Progress


class ReadElsewhere(Exception):
    """A consumer is to fetch from ``replica``, which is closer to it."""

    def __init__(self, replica: int) -> None:
        super().__init__()
        self.replica = replica


class ReplicaSelector:
    """Kafka's RackAwareReplicaSelector, for the partitions led here. `rack` is this broker's own."""

    def __init__(self, leading: LedPartitions, cluster: ClusterView, rack: str | None) -> None:
        self._leading = leading
        self._cluster = cluster
        self._rack = rack

    def to(self, rack: str, asked_on: Endpoint) -> RackReplicas | None:
        """Return the replicas in a consumer's rack, with their addresses on the listener that it uses.

        Return None if this leader serves the consumer: the rack is the leader's own, or no broker is in it.
        """
        if not rack or rack == self._rack:
            return None
        nodes = {node.id: node for node in self._cluster.nodes(asked_on) if node.rack == rack}
        return RackReplicas(self._leading.readable_from, nodes) if nodes else None


class RackReplicas:
    """For one request. `nodes`: the brokers of its rack that are alive."""

    __slots__ = ("_nodes", "_readable_from")

    def __init__(
        self, readable_from: Callable[[Partition, int], Iterable[Progress]], nodes: dict[int, Node]
    ) -> None:
        self._readable_from = readable_from
        self._nodes = nodes

    def check(self, partition: Partition, offset: int) -> None:
        """Raise ReadElsewhere where a replica of the rack has ``offset``: the one that is furthest, then the
        one caught up last, then that of the highest id, as Kafka chooses.
        """
        nodes = self._nodes
        nearby = [each for each in self._readable_from(partition, offset) if each.broker_id in nodes]
        if nearby:
            raise ReadElsewhere(max(nearby, key=_merit).broker_id)


def _merit(follower: Progress) -> tuple[int, int, int]:
    return follower.log_end_offset, follower.last_caught_up_ms, follower.broker_id
