"""The cluster as it is remembered: topics, their settings, the broker's own changed settings, producer ids.

A change is a plain dict (``Change``), decided by the broker, written by a store and then replayed here;
the same ``apply`` serves live changes and the load at start.
"""

from __future__ import annotations

import dataclasses
from typing import Any

Change = dict[str, Any]
"""One change as it is stored: ``{"type": "topic", ...}``; ``ClusterImage.apply`` knows the types."""

PRODUCER_ID_BLOCK = 1000
"""Producer ids handed out at a time, as Kafka's blocks are; what is left of a block is lost at a restart."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    """A topic: its 16-byte id, number of partitions and overridden settings under Kafka's keys."""

    name: str
    topic_id: bytes
    partitions: int
    configs: dict[str, str] = dataclasses.field(default_factory=dict)

    def as_change(self) -> Change:
        """The change that creates this topic or gives it this state."""
        return {
            "type": "topic",
            "name": self.name,
            "id": self.topic_id.hex(),
            "partitions": self.partitions,
            "configs": self.configs,
        }


class ClusterImage:
    """What all stored changes add up to.

    ``topics`` by name; ``deleted`` holds the ids of topics whose files may still be on disk;
    ``broker_configs`` are changed settings by broker, ``""`` meaning all brokers.
    """

    __slots__ = ("broker_configs", "deleted", "next_producer_id", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.deleted: set[bytes] = set()
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.next_producer_id = 0

    def apply(self, change: Change) -> None:
        """Replay one change; types that a later version wrote are passed over."""
        match change["type"]:
            case "topic":
                topic = TopicImage(
                    name=change["name"],
                    topic_id=bytes.fromhex(change["id"]),
                    partitions=change["partitions"],
                    configs=change["configs"],
                )
                self.topics[topic.name] = topic
            case "topic-deleted":
                gone = self.topics.pop(change["name"], None)
                if gone is not None:
                    self.deleted.add(gone.topic_id)
            case "broker-configs":
                self.broker_configs[change["broker"]] = change["configs"]
            case "producer-ids":
                self.next_producer_id = max(self.next_producer_id, change["next"])

    def as_changes(self) -> list[Change]:
        """The shortest list of changes that leads here; files of deleted topics are taken to be gone."""
        changes = [topic.as_change() for topic in self.topics.values()]
        changes += [
            {"type": "broker-configs", "broker": broker, "configs": configs}
            for broker, configs in self.broker_configs.items()
        ]
        changes.append({"type": "producer-ids", "next": self.next_producer_id})
        return changes
