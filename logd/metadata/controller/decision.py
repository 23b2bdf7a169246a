"""A decision of the controller, before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka_client.topic_partition import TopicPartition
from logd.metadata.image import Change

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[T_co]):
    """A decision: the changes to write, and the answer to the request.

    ``changes`` are written and then applied in this order; ``answer`` may be sent after that. Changes of
    partitions come before the change of the broker that caused them. If a write breaks off in between, the
    broker's change is missing, so the controller decides about the broker again.

    ``unclean`` are the partitions whose new leader was not in sync: records may be lost there.
    """

    changes: list[Change]
    answer: T_co
    unclean: tuple[TopicPartition, ...] = ()
