"""Herder: turns requests into records of the config topic, and the topic's records into what should run.

It is a pure machine. A request returns the records to write, and nothing changes before they are read back
with `read`: on one worker at once, in a group after a round through the config topic. `runs` says what should
run of a connector; a runtime compares that with what runs, whenever `read` returned the connector's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from connect.errors import NotFound
from connect.herder.config_state import ConfigState, Properties
from connect.herder.runs import ConnectorRun, Runs, TargetState, TaskRun
from connect.stores.config_records import (
    COMMIT,
    CONNECTOR,
    TARGET_STATE,
    TASK,
    TASK_COUNT,
    ConfigRecord,
)

__all__ = ["ConfigRecord", "Herder"]

_CONNECTOR_ITSELF = -1


class Herder:
    """The connectors of a worker or of a group of workers."""

    def __init__(self) -> None:
        self.config = ConfigState()
        self._restarts: Counter[tuple[str, int]] = Counter()
        self._watched: list[set[str]] = []

    def watch(self) -> set[str]:
        """Return a set of all connectors' names, to which `read` adds those that records change."""
        names = set(self.config.connectors)
        self._watched.append(names)
        return names

    def read(self, records: Iterable[ConfigRecord]) -> list[str]:
        """Apply records of the config topic. Return the names of the connectors that they change."""
        applied = dict.fromkeys(self.config.apply(key, value) for key, value in records)
        changed = [name for name in applied if name is not None]
        for names in self._watched:
            names.update(changed)
        return changed

    def runs(self, name: str) -> Runs:
        """Return what should run of a connector; nothing if there is none of this name."""
        config = self.config.connectors.get(name)
        if config is None:
            return Runs()
        target = self.config.target(name)
        connector = ConnectorRun(config, target, self._restarts[name, _CONNECTOR_ITSELF])
        if target is TargetState.STOPPED:
            return Runs(connector)
        planned_with = self.config.planned_with(name) or config
        configs = self.config.task_configs(name)
        tasks = {
            number: TaskRun(each, planned_with, target, self._restarts[name, number], len(configs))
            for number, each in enumerate(configs)
        }
        return Runs(connector, tasks)

    def units(self) -> dict[str, int]:
        """Return the number of tasks that each connector should have; none while it is STOPPED."""
        return {name: self.task_count(name) for name in self.config.connectors}

    def task_count(self, name: str) -> int:
        """Return the number of tasks that a connector should have; none while it is STOPPED."""
        if self.config.target(name) is TargetState.STOPPED:
            return 0
        return len(self.config.task_configs(name))

    def put_connector(
        self, name: str, config: Properties, target: TargetState | None = None
    ) -> list[ConfigRecord]:
        """Return the records that create a connector, in a target state if one is given, or change it."""
        record: ConfigRecord = (CONNECTOR + name, {"properties": dict(config)})
        return [record] if target is None else [_target_record(name, target), record]

    def delete_connector(self, name: str) -> list[ConfigRecord]:
        """Return the records that delete a connector. Raises NotFound if there is none."""
        self._check(name)
        return [(CONNECTOR + name, None), (TARGET_STATE + name, None)]

    def set_target(self, name: str, target: TargetState) -> list[ConfigRecord]:
        """Return the records that start, pause or stop a connector. Raises NotFound if there is none.

        STOPPED has no form that workers before Kafka 3.5 know: they read PAUSED, and no tasks (KIP-875).
        """
        self._check(name)
        state = _target_record(name, target)
        if target is TargetState.STOPPED:
            return [*self._task_records(name, []), state]
        return [state]

    def put_plan(self, name: str, task_configs: Sequence[Properties]) -> list[ConfigRecord]:
        """Return the records that commit the result of a plugin's `task_configs`; none if nothing changes.

        A connector's config is part of each task's: with another config the tasks are committed again.
        """
        if name not in self.config.connectors or self.config.target(name) is TargetState.STOPPED:
            return []
        is_same = (
            self.config.planned_with(name) == self.config.connectors[name]
            and not self.config.is_incomplete(name)
            and list(task_configs) == self.config.task_configs(name)
        )
        if is_same:
            return []
        return self._task_records(name, task_configs)

    def restart(self, name: str, tasks: Iterable[int], *, connector: bool) -> None:
        """Have the tasks with these numbers, and the connector itself if asked, started again.

        Raises NotFound if there is no such connector or task. Their target states stay as they are.
        """
        self._check(name)
        numbers = list(tasks)
        for number in numbers:
            if not 0 <= number < len(self.config.task_configs(name)):
                raise NotFound(f"connector {name} has no task {number}")
        self._restarts.update((name, number) for number in numbers)
        if connector:
            self._restarts[name, _CONNECTOR_ITSELF] += 1

    def records_beyond(self, name: str, stored: ConfigState) -> list[ConfigRecord]:
        """Return the records of a connector that `stored` lacks; `stored` has only records that were read.

        Task configs that the connector's config is newer than are left out: they are about to be committed.
        """
        config, target = self.config.connectors[name], self.config.target(name)
        records: list[ConfigRecord] = []
        if stored.target(name) is not target:
            records.append(_target_record(name, target))
        if name not in stored.connectors:
            records.append((CONNECTOR + name, {"properties": dict(config)}))
        tasks = self.config.task_configs(name)
        if self.config.planned_with(name) == config and stored.task_configs(name) != tasks:
            records += self._task_records(name, tasks)
        count = self.config.fenced_task_count(name)
        if count is not None and (stored.fenced_task_count(name) != count or COMMIT + name in dict(records)):
            # A count before a commit leaves the commit's tasks to be fenced, a count behind it does not.
            fenced: ConfigRecord = (TASK_COUNT + name, {"task-count": count})
            records.insert(0 if self.config.is_pending_fencing(name) else len(records), fenced)
        return records

    def _task_records(self, name: str, configs: Sequence[Properties]) -> list[ConfigRecord]:
        records: list[ConfigRecord] = [
            (f"{TASK}{name}-{number}", {"properties": dict(config)}) for number, config in enumerate(configs)
        ]
        return [*records, (COMMIT + name, {"tasks": len(configs)})]

    def _check(self, name: str) -> None:
        if name not in self.config.connectors:
            raise NotFound(f"no connector {name}")


def _target_record(name: str, target: TargetState) -> ConfigRecord:
    before = TargetState.PAUSED if target is TargetState.STOPPED else target
    return TARGET_STATE + name, {"state": before.value, "state.v2": target.value}
