"""MemoryStatusStore: the statuses of a standalone worker."""

from __future__ import annotations

from connect.stores import json_documents
from connect.stores.status import StoredStatus, TopicUse
from connect.stores.status_table import StatusTable, status_key, topic_key


class MemoryStatusStore:
    """A StatusStore in memory: it follows the rules of the topic, and is empty after a restart."""

    def __init__(self) -> None:
        self._table = StatusTable()

    def put(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, whatever is stored."""
        self._table.apply(status_key(connector, task), json_documents.encode(status.value()))

    def put_safe(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, unless another worker has stored one of a newer generation."""
        if status.may_replace(self.get(connector, task)):
            self.put(connector, status, task)

    def delete(self, connector: str, task: int | None = None) -> None:
        """Forget a task's status, or a connector's with its tasks', but not the topics that it has used."""
        self._table.apply(status_key(connector, task), None)

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """Return a status, or None."""
        return self._table.get(connector, task)

    def tasks(self, connector: str) -> dict[int, StoredStatus]:
        """Return the statuses of a connector's tasks by number."""
        return dict(self._table.tasks.get(connector, {}))

    def connectors(self) -> set[str]:
        """Return the names of all connectors with a status."""
        return set(self._table.connectors)

    def put_topic(self, use: TopicUse) -> None:
        """Store that a connector uses a topic."""
        self._table.apply(topic_key(use.connector, use.topic), json_documents.encode(use.value()))

    def topics(self, connector: str) -> list[TopicUse]:
        """Return the topics that a connector has used, by name."""
        return self._table.uses(connector)

    def delete_topic(self, connector: str, topic: str) -> None:
        """Forget that a connector used a topic."""
        self._table.apply(topic_key(connector, topic), None)
