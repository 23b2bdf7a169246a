"""A topic with its partitions, and the rules its name keeps to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from logd.broker.partition import Partition
from logd.config.topic import TopicConfig
from logd.errors import ErrorCode, KafkaError
from logd.metadata.image import TopicImage

NAME_LENGTH_MAX = 249
GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset((GROUP_OFFSETS, TRANSACTION_STATE))

_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class Topic:
    """``partitions`` by index, None where no log folder could hold one; ``is_internal``: a coordinator's."""

    __slots__ = ("config", "image", "is_internal", "name", "partitions", "topic_id")

    def __init__(self, image: TopicImage, config: TopicConfig) -> None:
        self.image = image
        self.name = image.name
        self.topic_id = image.topic_id
        self.is_internal = image.name in INTERNAL_TOPICS
        self.config = config
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


def check_name(name: str) -> None:
    """Raise KafkaError(INVALID_TOPIC_EXCEPTION) unless ``name`` can be a topic's and a folder's."""
    if not name:
        reason = "a topic needs a name"
    elif name in (".", ".."):
        reason = f"a topic cannot be called {name!r}"
    elif len(name) > NAME_LENGTH_MAX:
        reason = (
            f"topic name of {len(name)} characters, at most {NAME_LENGTH_MAX} are allowed: {name[:40]}..."
        )
    elif _NAME.fullmatch(name) is None:
        reason = f"topic name {name!r}: only ASCII letters and digits, '.', '_' and '-' are allowed"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def check_collision(name: str, others: Iterable[str]) -> None:
    """Refuse a name equal to another but for '.' and '_', which metric names cannot tell apart."""
    if "." not in name and "_" not in name:
        return
    folded = name.replace(".", "_")
    for other in others:
        if other != name and other.replace(".", "_") == folded:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"topic {name} collides with existing topic {other}: '.' and '_' count as the same",
            )
