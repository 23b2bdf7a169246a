"""`topics.regex` matched against the cluster's topics."""

from __future__ import annotations

import re

from kafka_client import TopicMetadata


def matches(pattern: re.Pattern[str], topic: TopicMetadata) -> bool:
    """Return True if a topic's whole name matches; internal topics never do.

    As in a consumer that subscribes to a pattern with `exclude.internal.topics`, Kafka's default.
    """
    return not topic.is_internal and pattern.fullmatch(topic.name) is not None
