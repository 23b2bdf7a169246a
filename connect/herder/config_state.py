"""ConfigState: the connectors, task configs and target states that a config topic's records add up to.

The keys, the values and the rules are those of Kafka Connect's KafkaConfigBackingStore:

    connector-X          {properties}            X's config; None removes X with its task configs
    task-X-n             {properties}            the config of X's task n; it counts once committed
    commit-X             {tasks}                 commits X's task configs: there are `tasks` of them
    target-state-X       {state, state.v2}       STARTED, PAUSED or (in state.v2 alone) STOPPED
    tasks-fencing-X      {task-count}            the producers of X's former tasks are fenced (KIP-618)
    session-key          {key, algorithm, creation-timestamp}    signs requests between workers (KIP-507)
    restart-connector-X  {include-tasks, only-failed}            a request to restart X (KIP-745)
    logger-cluster-NS    {level}                 a request to set a logger's level on all workers (KIP-976)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from connect.herder.requests import Requests
from connect.herder.runs import TargetState
from connect.herder.session_key import SessionKey
from connect.stores.config_records import (
    COMMIT,
    CONNECTOR,
    LOGGER,
    RESTART,
    SESSION_KEY,
    TARGET_STATE,
    TASK,
    TASK_COUNT,
)

_log = logging.getLogger(__name__)

Properties: TypeAlias = Mapping[str, str]


class ConfigState:
    """The state of a config topic, up to the last record given to `apply`."""

    def __init__(self) -> None:
        self.connectors: dict[str, Properties] = {}
        """The config of each connector."""
        self.session_key: SessionKey | None = None
        """The key that signs requests between workers."""
        self.requests = Requests()
        """The requests to all workers that nobody has taken yet."""
        self._targets: dict[str, TargetState] = {}
        self._tasks: dict[str, list[Properties]] = {}
        self._task_counts: dict[str, int] = {}
        self._uncommitted: dict[str, dict[int, Properties]] = {}
        self._planned_with: dict[str, Properties] = {}
        self._incomplete: set[str] = set()
        self._generations: dict[str, int] = {}
        self._fenced_task_counts: dict[str, int] = {}
        self._pending_fencing: set[str] = set()
        self._by_prefix: dict[str, Callable[[str, Any], str | None]] = {
            TARGET_STATE: self._set_target,
            CONNECTOR: self._set_connector,
            TASK: self._set_task,
            COMMIT: self._commit,
            RESTART: self.requests.add_restart,
            TASK_COUNT: self._set_fenced_task_count,
            SESSION_KEY: self._set_session_key,
            LOGGER: self.requests.add_logger_level,
        }

    def apply(self, key: str, value: Mapping[str, Any] | None) -> str | None:
        """Apply a record. Return the name of the connector that it changes, or None.

        A record that cannot be read changes nothing: it is logged with its key.
        """
        for prefix, change in self._by_prefix.items():
            if key.startswith(prefix):
                try:
                    return change(key.removeprefix(prefix), value)
                except (ValueError, KeyError, TypeError, AttributeError) as e:
                    _log.error("the record of %s in the config topic is ignored: %r", key, e)
                return None
        _log.error("the record of %s in the config topic is ignored: no such key is known", key)
        return None

    def target(self, connector: str) -> TargetState:
        """Return the target state of a connector; it is STARTED until another is set."""
        return self._targets.get(connector, TargetState.STARTED)

    def task_configs(self, connector: str) -> list[Properties]:
        """Return a connector's committed task configs; none if some of them are missing."""
        return [] if connector in self._incomplete else self._tasks.get(connector, [])

    def task_count(self, connector: str) -> int:
        """Return the number of tasks of the last commit, also if some of their configs are missing."""
        return self._task_counts.get(connector, 0)

    def planned_with(self, connector: str) -> Properties | None:
        """Return the connector's config at the last commit of its task configs, or None."""
        return self._planned_with.get(connector)

    def is_incomplete(self, connector: str) -> bool:
        """Return True if the last commit counted more task configs than the topic has."""
        return connector in self._incomplete

    def incomplete(self) -> set[str]:
        """Return the connectors whose tasks have to be planned again, since some task configs are missing.

        Compaction removes task configs that a later, uncommitted plan has replaced.
        """
        return set(self._incomplete)

    def generation(self, connector: str) -> int | None:
        """Return how often the connector's task configs were committed after the first time; None: never."""
        return self._generations.get(connector)

    def fenced_task_count(self, connector: str) -> int | None:
        """Return the number of tasks that the last fencing of zombies counted, or None (KIP-618)."""
        return self._fenced_task_counts.get(connector)

    def is_pending_fencing(self, connector: str) -> bool:
        """Return True if task configs were committed after the last fencing of zombies (KIP-618)."""
        return connector in self._pending_fencing

    def note_loss(self) -> None:
        """Take note that the topic has lost records, and that those it still has are applied again.

        A commit without its task configs commits those that were committed before.
        """
        for name, tasks in self._tasks.items():
            self._uncommitted[name] = {**dict(enumerate(tasks)), **self._uncommitted.get(name, {})}

    def _set_connector(self, name: str, value: Mapping[str, Any] | None) -> str:
        if value is None:
            self._remove(name)
        else:
            self.connectors[name] = _properties(value)
        return name

    def _remove(self, name: str) -> None:
        """Remove a connector but for its target state, whose key is deleted with the connector's.

        What fencing goes by stays, as in Kafka (KIP-618): a connector that is created again under this name
        has to fence the deleted one's tasks, and none of its plans may have the generation of an older one.
        That task configs were missing stays known too, until the next whole commit under this name.
        """
        self.connectors.pop(name, None)
        self._task_counts.pop(name, None)
        self._tasks.pop(name, None)
        self._uncommitted.pop(name, None)
        self._planned_with.pop(name, None)

    def _set_task(self, task: str, value: Mapping[str, Any] | None) -> None:
        name, separator, number = task.rpartition("-")
        if not separator or not (number.isascii() and number.isdigit()):
            raise ValueError("its key has no task number")
        if value is None:
            raise ValueError("it has no value")
        self._uncommitted.setdefault(name, {})[int(number)] = _properties(value)

    def _commit(self, name: str, value: Mapping[str, Any] | None) -> str | None:
        if name not in self.connectors:
            # The connector was deleted, and compaction has removed its config with the tombstone.
            self._remove(name)
            return None
        count = _integer(value, "tasks")
        uncommitted = self._uncommitted.get(name)
        if any(number not in (uncommitted or {}) for number in range(count)):
            self._incomplete.add(name)
        else:
            self._incomplete.discard(name)
            self._tasks[name] = [(uncommitted or {})[number] for number in range(count)]
            self._planned_with[name] = self.connectors[name]
            if uncommitted is not None:
                self._generations[name] = self._generations.get(name, -1) + 1
        if uncommitted is not None:
            self._uncommitted[name] = {}
        self._task_counts[name] = count
        self._pending_fencing.add(name)
        return name

    def _set_target(self, name: str, value: Mapping[str, Any] | None) -> str:
        if value is None:
            self._targets.pop(name, None)
        else:
            newer = value.get("state.v2")
            self._targets[name] = TargetState(newer if isinstance(newer, str) else value["state"])
        return name

    def _set_fenced_task_count(self, name: str, value: Mapping[str, Any] | None) -> str:
        self._fenced_task_counts[name] = _integer(value, "task-count")
        self._pending_fencing.discard(name)
        return name

    def _set_session_key(self, rest: str, value: Mapping[str, Any] | None) -> None:
        if rest:
            raise ValueError("no such key is known")
        self.session_key = SessionKey.of(value)


def _properties(value: Mapping[str, Any]) -> Properties:
    return {str(key): each for key, each in value["properties"].items()}


def _integer(value: Mapping[str, Any] | None, field: str) -> int:
    number = None if value is None else value[field]
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{field} is no integer: {number!r}")
    return number
