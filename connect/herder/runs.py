"""Runs: what a worker should run of a connector, with which config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from connect.config.rate_limit import without_live_keys


class TargetState(StrEnum):
    """The state that a user asked for; it is kept until another is asked for."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class ConnectorRun:
    """A connector that should run. One that differs in more than `target` and live keys replaces it."""

    config: Mapping[str, str]
    target: TargetState
    restarts: int = 0
    """How often a restart was asked for."""

    def continues(self, other: ConnectorRun | None) -> bool:
        """Return True if this run needs no other start than `other`; their targets may differ."""
        return (
            other is not None
            and self.restarts == other.restarts
            and without_live_keys(self.config) == without_live_keys(other.config)
        )


@dataclass(frozen=True, slots=True)
class TaskRun:
    """A task that should run. One that differs in more than `target` and live keys replaces it."""

    config: Mapping[str, str]
    connector_config: Mapping[str, str]
    """The connector's config that the task's was planned with."""
    target: TargetState
    restarts: int = 0
    task_count: int = 1
    """How many tasks the connector has, on all workers."""

    def continues(self, other: TaskRun | None) -> bool:
        """Return True if this run needs no other start than `other`; their targets may differ."""
        return (
            other is not None
            and self.restarts == other.restarts
            and without_live_keys(self.config) == without_live_keys(other.config)
            and without_live_keys(self.connector_config) == without_live_keys(other.connector_config)
        )


@dataclass(frozen=True, slots=True)
class Runs:
    """The parts of a connector that one worker should run: none if it is deleted or runs elsewhere."""

    connector: ConnectorRun | None = None
    """The connector itself; None if another worker runs it."""
    tasks: Mapping[int, TaskRun] = field(default_factory=dict)
    """By their numbers."""

    @property
    def is_empty(self) -> bool:
        """True if nothing should run."""
        return self.connector is None and not self.tasks
