"""A topic of the cluster, with the partitions of it that are held here."""

from __future__ import annotations

from logd.broker.partition import Partition
from logd.config.topic import TopicConfig
from logd.errors import ErrorCode, KafkaError
from logd.metadata.image import TopicImage

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset((GROUP_OFFSETS, TRANSACTION_STATE))


class Topic:
    """``image`` is the topic as it is in the cluster, ``partitions`` what is held here, by index: None for a
    partition that no log folder serves. ``is_internal``: a coordinator's.
    """

    __slots__ = ("config", "image", "is_deleted", "is_internal", "name", "partitions", "topic_id")

    def __init__(self, image: TopicImage, config: TopicConfig) -> None:
        self.image = image
        self.name = image.name
        self.topic_id = image.topic_id
        self.is_internal = image.name in INTERNAL_TOPICS
        self.config = config
        self.is_deleted = False
        self.partitions: list[Partition | None] = [None] * image.partitions

    def partition(self, index: int) -> Partition:
        """The partition, or the KafkaError that its absence deserves."""
        if not 0 <= index < len(self.partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {self.name} has {len(self.partitions)} partitions, there is no {index}",
            )
        partition = self.partitions[index]
        if partition is None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}-{index} is in a log folder that is offline"
            )
        return partition

    def configure(self, config: TopicConfig) -> None:
        """Take new settings; they hold from the next append on."""
        self.config = config
        for partition in self.partitions:
            if partition is not None:
                partition.configure(config)
