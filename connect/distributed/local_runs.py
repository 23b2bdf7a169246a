"""LocalRuns: the part of a group's connectors and tasks that one worker should run.

A new task config takes effect in two steps, as in Kafka Connect: every worker stops the tasks that have
another config by now before it joins again, and starts them only with the next assignment. So no two workers
work by two plans at one time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect.config.rate_limit import without_live_keys
from connect.group import Unit
from connect.herder import Herder, Runs
from connect.herder.config_state import Properties

_Plan = tuple[list[Properties], Properties | None]
"""Task configs, and the connector's config that they were planned with, both without live keys."""


class LocalRuns:
    """The runs of one worker: a herder's, as far as they are assigned. It does no I/O."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder
        self._units: frozenset[Unit] = frozenset()
        self._configured: Mapping[str, int] = {}
        """The number of each connector's tasks at the last assignment."""
        self._plans: dict[str, _Plan] = {}
        """Each connector's plan at the last assignment."""
        self._changed = herder.watch()
        """The connectors that records have changed since `needs_rebalance` last compared them."""
        self._differing: set[str] = set()
        """The compared connectors that differ from the last assignment."""

    @property
    def units(self) -> frozenset[Unit]:
        """The connectors and tasks that are assigned to this worker."""
        return self._units

    def assign(self, units: Iterable[Unit]) -> None:
        """Note an assignment: it begins with the newest plans that this worker has read."""
        self._units = frozenset(units)
        self._configured = self._herder.units()
        self._plans = {name: self._plan(name) for name in self._configured}
        self._changed.clear()
        self._differing.clear()

    def revoke(self, units: Iterable[Unit]) -> None:
        """Note that units are to stop."""
        self._units -= frozenset(units)

    def needs_rebalance(self) -> bool:
        """Return True if connectors or plans differ from those at the last assignment.

        A call compares the connectors that have changed since the last call, not all of them.
        """
        while self._changed:
            name = self._changed.pop()
            (self._differing.add if self._differs(name) else self._differing.discard)(name)
        return bool(self._differing)

    def _differs(self, name: str) -> bool:
        if name not in self._herder.config.connectors:
            return name in self._configured
        is_same = self._configured.get(name) == self._herder.task_count(name)
        return not is_same or self._plans.get(name) != self._plan(name)

    def names(self) -> set[str]:
        """Return the connectors of which this worker has a part."""
        return {unit.connector for unit in self._units}

    def connector(self, name: str) -> Runs:
        """Return the run of the connector itself, if it is assigned to this worker."""
        return Runs(self._herder.runs(name).connector) if Unit(name) in self._units else Runs()

    def tasks(self, name: str) -> Runs:
        """Return the runs of a connector's tasks that are assigned to this worker and may run."""
        configs, planned_with = self._plans.get(name, ([], None))
        newest_configs, newest_planned_with = self._plan(name)
        return Runs(
            None,
            {
                number: run
                for number, run in self._herder.runs(name).tasks.items()
                if Unit(name, number) in self._units
                and number < len(configs)
                and configs[number] == newest_configs[number]
                and planned_with == newest_planned_with
            },
        )

    def _plan(self, name: str) -> _Plan:
        config = self._herder.config
        planned_with = config.planned_with(name)
        return (
            [without_live_keys(each) for each in config.task_configs(name)],
            None if planned_with is None else without_live_keys(planned_with),
        )
