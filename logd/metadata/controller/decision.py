"""A decision of the controller, before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka_client.topic_partition import TopicPartition
from logd.metadata.image import Change

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[T_co]):
    """``changes`` are to be written, then applied in this order; ``answer`` may be given once they are.

    What is so of a broker comes behind what follows from it for partitions: a write that breaks off between
    them leaves the broker's news to be decided once more.

    ``unclean`` are partitions that get a leader which was not in sync: records may be lost there.
    """

    changes: list[Change]
    answer: T_co
    unclean: tuple[TopicPartition, ...] = ()
