"""StatusReports: the statuses of what a worker runs, as changes for the group's status store."""

from __future__ import annotations

from collections.abc import Callable

from connect.group import Unit
from connect.group.units import CONNECTOR
from connect.runtime.connector import WorkerConnector
from connect.runtime.states import State, Status
from connect.stores import StatusStore, StoredStatus


class StatusReports:
    """Stores what changes in the statuses of a worker's connectors and tasks.

    The end of a run, and a failure, do not replace what a worker of a newer generation has stored.
    """

    def __init__(self, store: StatusStore, worker_id: str, generation: Callable[[], int]) -> None:
        self._store = store
        self._worker_id = worker_id
        self._generation = generation
        self._stored: dict[str, dict[Unit, StoredStatus]] = {}
        """The last status of each unit that runs here, by connector."""

    def connector(self, connector: WorkerConnector) -> None:
        """Store the status of a connector itself, if it changed."""
        self._report(Unit(connector.name), connector.status, connector.version)

    def tasks(self, connector: WorkerConnector) -> None:
        """Store the statuses of a connector's tasks that changed."""
        numbers = {task.setting.task_id for task in connector.tasks}
        stored = self._stored.get(connector.name, {})
        for unit in [unit for unit in stored if not unit.is_connector and unit.task not in numbers]:
            self._forget(unit)
        for task in connector.tasks:
            unit = Unit(connector.name, task.setting.task_id)
            self._report(unit, task.status, task.version or connector.version)

    def failed(self, unit: Unit, error: BaseException) -> None:
        """Store that a unit cannot run, as for a config that is not valid."""
        status = Status()
        status.fail(error)
        self._report(unit, status, None)

    def restarting(self, unit: Unit) -> None:
        """Store that a unit is about to be restarted."""
        self._put(unit, State.RESTARTING, None, None)

    def unplaced(self, unit: Unit, reason: str) -> None:
        """Store that no worker may have a task, and why."""
        stored = self._store.get(unit.connector, unit.task)
        if stored is None or (stored.state, stored.trace) != (State.UNASSIGNED.value, reason):
            self._put(unit, State.UNASSIGNED, reason, None)

    def delete(self, name: str) -> None:
        """Delete the statuses of a connector that there is no more, and of its topics."""
        for use in self._store.topics(name):
            self._store.delete_topic(name, use.topic)
        for task in self._store.tasks(name):
            self._store.delete(name, task)
        self._store.delete(name)

    def again(self) -> None:
        """Store all statuses of this worker again, because the store has lost some."""
        for unit, stored in [each for units in self._stored.values() for each in units.items()]:
            self._store.put_safe(unit.connector, stored, None if unit.is_connector else unit.task)

    def _report(self, unit: Unit, status: Status, version: str | None) -> None:
        before = self._stored.get(unit.connector, {}).get(unit)
        if before is None and status.state is State.UNASSIGNED:
            return
        if before is None or (before.state, before.trace) != (status.state.value, status.trace):
            self._put(unit, status.state, status.trace, version)

    def _put(self, unit: Unit, state: State, trace: str | None, version: str | None) -> None:
        task = None if unit.task == CONNECTOR else unit.task
        stored = StoredStatus(
            state=state.value,
            worker_id=self._worker_id,
            generation=self._generation(),
            trace=trace,
            version=version,
        )
        if state in (State.UNASSIGNED, State.FAILED):
            self._store.put_safe(unit.connector, stored, task)
        else:
            self._store.put(unit.connector, stored, task)
        if state is State.UNASSIGNED:
            self._forget(unit)
        else:
            self._stored.setdefault(unit.connector, {})[unit] = stored

    def _forget(self, unit: Unit) -> None:
        stored = self._stored.get(unit.connector, {})
        stored.pop(unit, None)
        if not stored:
            self._stored.pop(unit.connector, None)
