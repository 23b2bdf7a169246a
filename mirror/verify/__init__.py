"""Proves a topic and its copy equal, or finds what differs and what cannot be read.

`topic` is the way through a comparison: `in_order` compares records by digests (`digest`), `latest` the
latest values of a compacted topic's keys. `reading` reads one side within a rate (`pace`), `comparison` has
the results.
"""

from mirror.verify.comparison import (
    ComparedBy,
    Difference,
    PartitionComparison,
    Side,
    TopicComparison,
    Unreadable,
)
from mirror.verify.topic import TopicVerification, verify_topic

__all__ = [
    "ComparedBy",
    "Difference",
    "PartitionComparison",
    "Side",
    "TopicComparison",
    "TopicVerification",
    "Unreadable",
    "verify_topic",
]
