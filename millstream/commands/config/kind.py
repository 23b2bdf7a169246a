"""The kinds of entities that have settings."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """Kafka's entity types."""

    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"
    BROKER_LOGGER = "broker-logger"
