"""A topic of the cluster, with the partitions of it that are held here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.partition.fencing import check_leader_epoch

if TYPE_CHECKING:
    from logd.broker.partition.partition import Partition
    from logd.config.topic import TopicConfig
    from logd.metadata.image import TopicImage

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset((GROUP_OFFSETS, TRANSACTION_STATE))


class Absences(Protocol):
    """The errors for partitions that this broker does not lead, or does not have."""

    def not_leader(self, tp: TopicPartition) -> KafkaError:
        """Return the error for a partition that another broker leads."""

    def absence(self, tp: TopicPartition) -> KafkaError:
        """Return the error for a partition that is not open here."""


class Topic:
    """A topic: ``image`` is its state in the cluster, ``partitions`` are those held here, by index.

    A partition is None if no log directory serves it, or if it is on other brokers. ``is_internal`` is true
    for a coordinator's topic.
    """

    __slots__ = ("_cluster", "config", "image", "is_deleted", "is_internal", "name", "partitions", "topic_id")

    def __init__(self, image: TopicImage, config: TopicConfig, cluster: Absences) -> None:
        self._cluster = cluster
        self.image = image
        self.name = image.name
        self.topic_id = image.topic_id
        self.is_internal = image.name in INTERNAL_TOPICS
        self.config = config
        self.is_deleted = False
        self.partitions: list[Partition | None] = [None] * image.partitions

    def partition(self, index: int, known_epoch: int = -1) -> Partition:
        """Return the partition if this broker leads it. Raises the KafkaError for clients otherwise.

        ``known_epoch`` is the client's leader epoch, -1 if it does not say. Where this broker leads it, it is
        left to the caller to check; a follower's client hears of its epoch first, as in Kafka.
        """
        if 0 <= index < len(self.partitions):
            partition = self.partitions[index]
            if partition is not None and partition.is_leader:
                return partition
        partition = self.hosted(index)
        check_leader_epoch(partition, known_epoch)
        raise self._cluster.not_leader(partition.tp)

    def readable(self, index: int) -> Partition:
        """Return the partition, led or followed, for clients that may read from any replica (KIP-392).

        Raises KafkaError as `held`.
        """
        if 0 <= index < len(self.partitions):
            partition = self.partitions[index]
            if partition is not None:
                return partition
        return self.hosted(index)

    def hosted(self, index: int) -> Partition:
        """Return the partition if it has a replica here, leader or follower. Raises KafkaError with the
        reason otherwise.
        """
        if not 0 <= index < len(self.partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {self.name} has {len(self.partitions)} partitions, there is no {index}",
            )
        partition = self.partitions[index]
        if partition is None:
            raise self._cluster.absence(TopicPartition(self.name, index))
        return partition

    def configure(self, config: TopicConfig) -> None:
        """Take new settings; they hold from the next append on."""
        self.config = config
        for partition in self.partitions:
            if partition is not None:
                partition.configure(config)
