"""`ConsumedOffsets`: the offsets and the group of a consumer, for a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.producer.group_metadata import GroupMetadata
from kafka_client.topic_partition import TopicPartition


class ConsumedOffsets(Protocol):
    """A group member's offsets, as `Consumer` has them."""

    def consumed_offsets(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit: of each partition the next one to read."""

    def group_metadata(self) -> GroupMetadata:
        """Return the member and its generation (KIP-447)."""
