"""Statuses of connectors and tasks as workers store them, and what stores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

STATES = frozenset({"UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStatus:
    """A connector's or task's status, as a worker of a generation of the group reported it."""

    state: str
    """The state; `STATES` has them all."""
    worker_id: str
    """The worker's address, `host:port`."""
    generation: int
    """The group's generation, as the worker knew it."""
    trace: str | None = None
    version: str | None = None
    """The plugin's version."""

    def value(self) -> dict[str, Any]:
        """Return the value of the status topic's record."""
        return {
            "state": str(self.state),
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
            "version": self.version,
        }

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> StoredStatus:
        """Return the status of a record's value. Raises ValueError if it cannot be read."""
        state, generation = value.get("state"), value.get("generation")
        if state not in STATES or type(generation) is not int:
            raise ValueError(f"state or generation cannot be read: {state!r}, {generation!r}")
        trace, worker, version = (value.get(name) for name in ("trace", "worker_id", "version"))
        if not all(text is None or isinstance(text, str) for text in (trace, worker, version)):
            raise ValueError("trace, worker_id or version is no text")
        return cls(state=state, worker_id=worker or "", generation=generation, trace=trace, version=version)

    def may_replace(self, other: StoredStatus | None) -> bool:
        """Return True unless `other` is another worker's, of a newer generation (Kafka's putSafe).

        A worker that lost its tasks reports them UNASSIGNED, perhaps after their new owner reported RUNNING.
        """
        return other is None or other.worker_id == self.worker_id or other.generation <= self.generation


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUse:
    """A topic that a connector has used, and the task that used it first (KIP-558)."""

    topic: str
    connector: str
    task: int
    discovered_ms: int
    """Milliseconds since 1970."""

    def value(self) -> dict[str, Any]:
        """Return the value of the status topic's record."""
        return {
            "topic": {
                "name": self.topic,
                "connector": self.connector,
                "task": self.task,
                "discoverTimestamp": self.discovered_ms,
            }
        }

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> TopicUse:
        """Return the use of a record's value. Raises ValueError if it cannot be read."""
        fields = value.get("topic")
        if not isinstance(fields, Mapping):
            raise ValueError("a topic's status is no mapping")
        name, connector, task, time = (
            fields.get(key) for key in ("name", "connector", "task", "discoverTimestamp")
        )
        if not (isinstance(name, str) and isinstance(connector, str) and type(task) is type(time) is int):
            raise ValueError("name, connector, task or discoverTimestamp cannot be read")
        return cls(topic=name, connector=connector, task=int(task or 0), discovered_ms=int(time or 0))


class StatusStore(Protocol):
    """The statuses of a group's connectors and tasks; `task` None is the connector itself.

    No method waits: what is put is stored soon, and what is returned comes from memory.
    """

    def put(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, whatever is stored."""
        ...

    def put_safe(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, unless another worker has stored one of a newer generation."""
        ...

    def delete(self, connector: str, task: int | None = None) -> None:
        """Forget a task's status, or a connector's with its tasks', but not the topics that it has used."""
        ...

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """Return a status, or None."""
        ...

    def tasks(self, connector: str) -> dict[int, StoredStatus]:
        """Return the statuses of a connector's tasks by number."""
        ...

    def connectors(self) -> set[str]:
        """Return the names of all connectors with a status."""
        ...

    def put_topic(self, use: TopicUse) -> None:
        """Store that a connector uses a topic."""
        ...

    def topics(self, connector: str) -> list[TopicUse]:
        """Return the topics that a connector has used, by name."""
        ...

    def delete_topic(self, connector: str, topic: str) -> None:
        """Forget that a connector used a topic."""
        ...
