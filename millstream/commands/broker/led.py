"""How many partitions each broker leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kafka_client import TopicMetadata


def partitions_led(topics: Mapping[str, TopicMetadata]) -> Counter[int]:
    """Return the number of led partitions by broker id; 0 for a broker that leads none."""
    return Counter(p.leader for topic in topics.values() for p in topic.partitions.values())
