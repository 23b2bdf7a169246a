"""Statuses of connectors and tasks as workers store them, and the rules by which one replaces another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStatus:
    """A connector's or task's status, as a worker of a generation of the group reported it."""

    state: str
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None
    """The plugin's version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUse:
    """A topic that a connector has used, and the task that used it first (KIP-558)."""

    topic: str
    connector: str
    task: int
    discovered_ms: int


class StatusStore(Protocol):
    """The statuses of a group's connectors and tasks; `task` None is the connector itself.

    No method waits: what is put is stored soon, and read from memory.
    """

    def put(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, whatever is stored."""
        ...

    def put_safe(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, unless another worker has stored one of a newer generation."""
        ...

    def delete(self, connector: str, task: int | None = None) -> None:
        """Forget a status."""
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
