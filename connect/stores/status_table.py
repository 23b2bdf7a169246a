"""StatusTable: what the records of a status topic add up to, by the rules of Kafka's KafkaStatusBackingStore.

status-connector-X      {state, trace, worker_id, generation, version}
status-task-X-n         the same for X's task n
status-topic-T:connector-X    {topic: {name, connector, task, discoverTimestamp}}    X has used the topic T
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from connect.stores import json_documents
from connect.stores.status import StoredStatus, TopicUse

_log = logging.getLogger(__name__)

CONNECTOR, TASK, TOPIC, TOPIC_CONNECTOR = "status-connector-", "status-task-", "status-topic-", ":connector-"


def status_key(connector: str, task: int | None = None) -> str:
    """Return the key of a connector's status, or of one of its tasks'."""
    return CONNECTOR + connector if task is None else f"{TASK}{connector}-{task}"


def topic_key(connector: str, topic: str) -> str:
    """Return the key of a connector's use of a topic."""
    return TOPIC + topic + TOPIC_CONNECTOR + connector


class StatusTable:
    """The statuses of a status topic, up to the last record given to `apply`."""

    def __init__(self, on_topic_deleted: Callable[[str], None] = lambda connector: None) -> None:
        """Create an empty table.

        `on_topic_deleted` is called with a connector's name when a use of a topic by it is deleted.
        """
        self._on_topic_deleted = on_topic_deleted
        self.connectors: dict[str, StoredStatus] = {}
        self.tasks: dict[str, dict[int, StoredStatus]] = {}
        """By connector and number."""
        self.topics: dict[str, dict[str, TopicUse]] = {}
        """By connector and topic."""

    def apply(self, key: str, text: bytes | None) -> None:
        """Apply a record. One that cannot be read changes nothing: it is logged with its key."""
        try:
            value = json_documents.decode(text)
            if not (value is None or isinstance(value, dict)):
                raise ValueError(f"it is no mapping but {value!r:.100}")
            if key.startswith(CONNECTOR):
                self._set_connector(key.removeprefix(CONNECTOR), value)
            elif key.startswith(TASK):
                self._set_task(key.removeprefix(TASK), value)
            elif key.startswith(TOPIC):
                self._set_topic(key.removeprefix(TOPIC), value)
            else:
                raise ValueError("no such key is known")
        except ValueError as e:
            _log.warning("the record of %s in the status topic is ignored: %s", key, e)

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """Return a status, or None."""
        if task is None:
            return self.connectors.get(connector)
        return self.tasks.get(connector, {}).get(task)

    def uses(self, connector: str) -> list[TopicUse]:
        """Return the topics that a connector has used, by name."""
        return sorted(self.topics.get(connector, {}).values(), key=lambda use: use.topic)

    def _set_connector(self, connector: str, value: dict[str, Any] | None) -> None:
        if not connector:
            raise ValueError("its key names no connector")
        if value is None:
            self.connectors.pop(connector, None)
            self.tasks.pop(connector, None)
        else:
            self.connectors[connector] = StoredStatus.of(value)

    def _set_task(self, task: str, value: dict[str, Any] | None) -> None:
        connector, separator, text = task.rpartition("-")
        if not (separator and text.isascii() and text.isdigit()):
            raise ValueError("its key has no task number")
        if value is not None:
            status, tasks = StoredStatus.of(value), self.tasks.setdefault(connector, {})
            if not _is_stale(status, tasks.get(int(text))):
                tasks[int(text)] = status
        elif connector in self.tasks:
            self.tasks[connector].pop(int(text), None)
            if not self.tasks[connector]:
                del self.tasks[connector]

    def _set_topic(self, key: str, value: dict[str, Any] | None) -> None:
        topic, separator, connector = key.partition(TOPIC_CONNECTOR)
        if not (topic and separator and connector):
            raise ValueError("its key does not name a topic and a connector")
        if value is not None:
            self.topics.setdefault(connector, {})[topic] = TopicUse.of(value)
        elif (uses := self.topics.get(connector)) is not None:
            uses.pop(topic, None)
            if not uses:
                del self.topics[connector]
            self._on_topic_deleted(connector)


def _is_stale(status: StoredStatus, before: StoredStatus | None) -> bool:
    """Return True for UNASSIGNED of a worker that lost the task, after RUNNING of the one that has it."""
    return (
        status.state == "UNASSIGNED"
        and before is not None
        and before.state == "RUNNING"
        and before.generation >= status.generation
    )
