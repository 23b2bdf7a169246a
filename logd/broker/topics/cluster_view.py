"""The brokers of the cluster, and the replicas and leader of each partition, as clients see them.

A standalone broker's image has neither brokers nor partition states. The view then has this broker alone,
with the address of the listener that the client used, as leader of what it serves. Handlers encode the view.
The controller decides changes, and the catalog applies them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.image import NO_LEADER

if TYPE_CHECKING:
    from logd.broker.topics.topic import Topic
    from logd.config.listeners import Endpoint
    from logd.metadata.image import BrokerImage, ClusterImage, PartitionImage

NO_CONTROLLER = -1
"""The controller id in responses while no controller is known."""


class Node(NamedTuple):
    """A broker as clients of one listener reach it."""

    id: int
    host: str
    port: int
    rack: str | None


class Leader(NamedTuple):
    """Who leads a partition by this broker's knowledge; ``id`` is -1 for nobody."""

    id: int
    epoch: int


class PartitionView(NamedTuple):
    """A partition as clients of one listener see it.

    ``leader`` is -1 unless the leader is alive and has that listener. ``error_code`` says which condition
    failed: LEADER_NOT_AVAILABLE or LISTENER_NOT_FOUND. ``offline`` are replicas on brokers that are not
    alive, or in log directories that failed.
    """

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]
    error_code: ErrorCode = ErrorCode.NONE


_NOBODY: list[int] = []


class ClusterView:
    """The view of the cluster for clients. ``controller_id`` is the controller's id, set by
    `Broker.controller_changed`; a standalone broker is its own controller.
    """

    def __init__(self, image: ClusterImage, node_id: int, rack: str | None) -> None:
        self.image = image
        self.node_id = node_id
        self.controller_id = NO_CONTROLLER
        self._rack = rack

    @property
    def is_standalone(self) -> bool:
        """True if this broker is standalone: it leads every partition and has no peers."""
        return not self.image.brokers and not self.image.partitions

    # Brokers

    def nodes(self, asked_on: Endpoint) -> list[Node]:
        """Return the brokers that are alive and have the listener that the client used."""
        if self.is_standalone:
            return [self._itself(asked_on)]
        reachable = (_node(broker, asked_on.listener) for broker in self.image.brokers.values())
        return sorted(node for node in reachable if node is not None)

    def node(self, broker_id: int, asked_on: Endpoint) -> Node | None:
        """Return the broker if it is alive and has the listener that the client used, else None."""
        if self.is_standalone:
            return self._itself(asked_on) if broker_id == self.node_id else None
        broker = self.image.brokers.get(broker_id)
        return None if broker is None else _node(broker, asked_on.listener)

    def _itself(self, asked_on: Endpoint) -> Node:
        return Node(self.node_id, asked_on.host, asked_on.port, self._rack)

    @property
    def controller(self) -> int:
        """The controller's id if it is alive, as Kafka with ZooKeeper says it; otherwise -1."""
        if self.is_standalone:
            return self.node_id
        return self.controller_id if self.controller_id in self.image.brokers else NO_CONTROLLER

    # Partitions

    def partition(self, topic: Topic, index: int, asked_on: Endpoint) -> PartitionView:
        """Partition ``index`` of a topic, which has so many."""
        return self.partitions(topic, range(index, index + 1), asked_on)[0]

    def partitions(self, topic: Topic, indexes: range, asked_on: Endpoint) -> list[PartitionView]:
        """Return the views of a range of a topic's partitions. They share lists: do not change them."""
        if self.is_standalone:
            return self._own(topic, indexes)
        reachable = {node.id for node in self.nodes(asked_on)}
        return [self._view_of(TopicPartition(topic.name, index), reachable) for index in indexes]

    def _own(self, topic: Topic, indexes: range) -> list[PartitionView]:
        """Return views of the standalone broker's partitions; those with equal epochs share one view."""
        itself, node_id = [self.node_id], self.node_id
        offline = PartitionView(NO_LEADER, -1, itself, itself, itself, ErrorCode.LEADER_NOT_AVAILABLE)
        by_epoch: dict[int, PartitionView] = {}
        views = []
        for partition in topic.partitions[indexes.start : indexes.stop]:
            if partition is None or partition.is_offline:
                view = offline
            elif (shared_view := by_epoch.get(partition.leader_epoch)) is not None:
                view = shared_view
            else:
                epoch = partition.leader_epoch
                view = by_epoch[epoch] = PartitionView(node_id, epoch, itself, itself, _NOBODY)
            views.append(view)
        return views

    def _view_of(self, tp: TopicPartition, reachable: Collection[int]) -> PartitionView:
        state = self.image.partitions.get(tp)
        if state is None:  # the topic is there, its first leaders follow
            return PartitionView(NO_LEADER, -1, _NOBODY, _NOBODY, _NOBODY, ErrorCode.LEADER_NOT_AVAILABLE)
        error_code = self._leader_error(state.leader, reachable)
        return PartitionView(
            NO_LEADER if error_code else state.leader,
            state.leader_epoch,
            list(state.replicas),
            list(state.isr),
            self._offline(tp, state),
            error_code,
        )

    def _leader_error(self, leader: int, reachable: Collection[int]) -> ErrorCode:
        if leader in reachable:
            return ErrorCode.NONE
        is_alive = leader in self.image.brokers
        return ErrorCode.LISTENER_NOT_FOUND if is_alive else ErrorCode.LEADER_NOT_AVAILABLE

    def _offline(self, tp: TopicPartition, state: PartitionImage) -> list[int]:
        image = self.image
        return [
            replica
            for replica in state.replicas
            if replica not in image.brokers or (image.offline and tp in image.offline_of(replica))
        ]

    def leader_of(self, tp: TopicPartition) -> Leader | None:
        """Return the leader in the image, alive or not, or None for a partition that is not in the image."""
        state = self.image.partitions.get(tp)
        return None if state is None else Leader(state.leader, state.leader_epoch)

    def absence(self, tp: TopicPartition) -> KafkaError:
        """Return the error for a partition of a known topic that is not open here.

        As in Kafka: KAFKA_STORAGE_ERROR if the log directory failed, NOT_LEADER_OR_FOLLOWER if the partition
        is on other brokers, and UNKNOWN_TOPIC_OR_PARTITION if it is not in the image.
        """
        state = self.image.partitions.get(tp)
        if self.is_standalone or (state is not None and self.node_id in state.replicas):
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp} is in a log directory that is offline")
        if state is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp} yet")
        return self.not_leader(tp)

    def not_leader(self, tp: TopicPartition) -> KafkaError:
        """Return the error for a partition that another broker leads."""
        leader = self.leader_of(tp)
        leader_name = f"broker {leader.id}" if leader is not None and leader.id != NO_LEADER else "no broker"
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"{tp} is led by {leader_name}, not by this broker, {self.node_id}: ask for metadata again",
        )


def _node(broker: BrokerImage, listener: str) -> Node | None:
    for endpoint in broker.endpoints:
        if endpoint.listener == listener:
            return Node(broker.id, endpoint.host, endpoint.port, broker.rack)
    return None
