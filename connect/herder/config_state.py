"""ConfigState: the connectors, task configs and target states that a config topic's records add up to.

The keys and values are those of Kafka Connect's KafkaConfigBackingStore:

    connector-X     {properties}            X's config; None removes X with all that belongs to it
    task-X-n        {properties}            the config of X's task n; it counts once committed
    commit-X        {tasks}                 commits X's task configs: there are `tasks` of them
    target-state-X  {state, state.v2}       STARTED, PAUSED or (in state.v2 alone) STOPPED
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeAlias

from connect.herder.runs import TargetState
from connect.stores.config_records import COMMIT, CONNECTOR, TARGET_STATE, TASK

_log = logging.getLogger(__name__)

Properties: TypeAlias = Mapping[str, str]


class ConfigState:
    """The state of a config topic, up to the last record given to `apply`."""

    def __init__(self) -> None:
        self.connectors: dict[str, Properties] = {}
        """The config of each connector."""
        self._targets: dict[str, TargetState] = {}
        self._tasks: dict[str, list[Properties]] = {}
        self._uncommitted: dict[str, dict[int, Properties]] = {}
        self._planned_with: dict[str, Properties] = {}
        self._incomplete: set[str] = set()

    def apply(self, key: str, value: Mapping[str, Any] | None) -> str | None:
        """Apply a record. Return the name of the connector that it changes, or None.

        A record that cannot be read changes nothing: it is logged with its key.
        """
        try:
            if key.startswith(TARGET_STATE):
                return self._set_target(key.removeprefix(TARGET_STATE), value)
            if key.startswith(CONNECTOR):
                return self._set_connector(key.removeprefix(CONNECTOR), value)
            if key.startswith(COMMIT):
                return self._commit(key.removeprefix(COMMIT), value)
            if key.startswith(TASK):
                self._set_task(key.removeprefix(TASK), value)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            _log.error("the record of %s in the config topic is ignored: %r", key, e)
        return None

    def target(self, connector: str) -> TargetState:
        """Return the target state of a connector; it is STARTED until another is set."""
        return self._targets.get(connector, TargetState.STARTED)

    def task_configs(self, connector: str) -> list[Properties]:
        """Return a connector's committed task configs; none if some of them are missing."""
        return [] if connector in self._incomplete else self._tasks.get(connector, [])

    def planned_with(self, connector: str) -> Properties | None:
        """Return the connector's config at the last commit of its task configs, or None."""
        return self._planned_with.get(connector)

    def is_incomplete(self, connector: str) -> bool:
        """Return True if the last commit counted more task configs than the topic has."""
        return connector in self._incomplete

    def _set_connector(self, name: str, value: Mapping[str, Any] | None) -> str:
        if value is not None:
            self.connectors[name] = _properties(value)
            return name
        self.connectors.pop(name, None)
        self._targets.pop(name, None)
        self._tasks.pop(name, None)
        self._uncommitted.pop(name, None)
        self._planned_with.pop(name, None)
        self._incomplete.discard(name)
        return name

    def _set_task(self, task: str, value: Mapping[str, Any] | None) -> None:
        name, separator, number = task.rpartition("-")
        if not separator:
            raise ValueError("its key has no task number")
        if value is not None:
            self._uncommitted.setdefault(name, {})[int(number)] = _properties(value)

    def _commit(self, name: str, value: Mapping[str, Any] | None) -> str | None:
        if value is None:
            return None
        count = int(value["tasks"])
        uncommitted = self._uncommitted.pop(name, {})
        if any(number not in uncommitted for number in range(count)):
            # Compaction removes task configs that a later, uncommitted plan has replaced.
            self._incomplete.add(name)
            return name
        self._incomplete.discard(name)
        self._tasks[name] = [uncommitted[number] for number in range(count)]
        if name in self.connectors:
            self._planned_with[name] = self.connectors[name]
        return name

    def _set_target(self, name: str, value: Mapping[str, Any] | None) -> str:
        if value is None:
            self._targets.pop(name, None)
        else:
            self._targets[name] = TargetState(value.get("state.v2", value.get("state")))
        return name


def _properties(value: Mapping[str, Any]) -> Properties:
    return {str(key): each for key, each in value["properties"].items()}
