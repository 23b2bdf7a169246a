"""Settings that name places of the source: `flights-0@1234, flights-2@17`."""

from __future__ import annotations

from kafka_client import TopicPartition
from kafka_client.errors import ConfigError

Places = tuple[tuple[TopicPartition, int], ...]
"""Partitions of the source, each with an offset."""


def parse_places(key: str, text: str) -> Places:
    """Return the places in the value of setting `key`. Raises ConfigError."""
    return tuple(_place(key, place.strip()) for place in text.split(",") if place.strip())


def _place(key: str, text: str) -> tuple[TopicPartition, int]:
    tp, _, offset = text.partition("@")
    topic, _, partition = tp.rpartition("-")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        raise ConfigError(key, text, "TOPIC-PARTITION@OFFSET, separated by commas")
    return TopicPartition(topic, int(partition)), int(offset)
