"""The records of a config topic: their keys, and the type that carries them between herder and store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

ConfigRecord: TypeAlias = tuple[str, Mapping[str, Any] | None]
"""Key and value; None deletes the key."""
Decision: TypeAlias = Callable[[], Iterable[ConfigRecord]]
"""Returns the records of a change, by the newest configs; it may raise, and must not block."""

CONNECTOR, TASK, COMMIT, TARGET_STATE = "connector-", "task-", "commit-", "target-state-"
RESTART, TASK_COUNT, SESSION_KEY, LOGGER = (
    "restart-connector-",
    "tasks-fencing-",
    "session-key",
    "logger-cluster-",
)
