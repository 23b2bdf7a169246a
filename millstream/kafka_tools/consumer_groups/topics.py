"""`topic:0,1`: partitions of a topic, as `kafka-consumer-groups` takes them."""

from __future__ import annotations

from kafka_client import TopicPartition
from millstream.kafka_tools.java.java_errors import illegal_argument
from millstream.kafka_tools.java.java_integers import parse_integer


def parse_topic_partitions(text: str) -> list[TopicPartition]:
    """Return the partitions. Raises JavaError if the text does not have this form."""
    parts = text.rstrip(":").split(":")
    if len(parts) != 2:
        raise illegal_argument(f"Invalid topic arg '{text}', expected topic name and partitions")
    topic, partitions = parts
    tps = []
    for partition in partitions.split(","):
        try:
            tps.append(TopicPartition(topic, parse_integer(partition)))
        except ValueError:
            raise illegal_argument(
                f"Invalid partition '{partition}' specified in topic arg '{text}''"
            ) from None
    return tps
