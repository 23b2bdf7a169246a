"""StatusTopic: statuses in a group's status topic; Kafka's KafkaStatusBackingStore."""

from __future__ import annotations

from connect.stores.internal_topic import InternalTopic
from connect.stores.status import StoredStatus, TopicUse
from kafka_client import Client


class StatusTopic:
    """A StatusStore in a topic. Open it with `await StatusTopic.open(...)`, and `close` it."""

    @classmethod
    async def open(cls, client: Client, topic: InternalTopic) -> StatusTopic:
        """Read the topic whole."""
        raise NotImplementedError

    def put(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, whatever is stored."""
        raise NotImplementedError

    def put_safe(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, unless another worker has stored one of a newer generation."""
        raise NotImplementedError

    def delete(self, connector: str, task: int | None = None) -> None:
        """Forget a status."""
        raise NotImplementedError

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """Return a status, or None."""
        raise NotImplementedError

    def tasks(self, connector: str) -> dict[int, StoredStatus]:
        """Return the statuses of a connector's tasks by number."""
        raise NotImplementedError

    def connectors(self) -> set[str]:
        """Return the names of all connectors with a status."""
        raise NotImplementedError

    def put_topic(self, use: TopicUse) -> None:
        """Store that a connector uses a topic."""
        raise NotImplementedError

    def topics(self, connector: str) -> list[TopicUse]:
        """Return the topics that a connector has used, by name."""
        raise NotImplementedError

    def delete_topic(self, connector: str, topic: str) -> None:
        """Forget that a connector used a topic."""
        raise NotImplementedError

    async def flush(self) -> None:
        """Return once everything that was put is stored and read back."""
        raise NotImplementedError

    async def close(self) -> None:
        """Store what was put, for a bounded time, and stop following."""
        raise NotImplementedError
