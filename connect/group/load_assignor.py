"""LoadAssignor: the cooperative assignor, with tasks placed by their load instead of their number."""

from __future__ import annotations

from collections.abc import Callable

from connect.group.assignor import CooperativeAssignor
from connect.group.loads import Loads, add, of_kind, surplus
from connect.group.placement import Facts, misplaced, moves, place_by_load
from connect.group.units import Unit


class LoadAssignor(CooperativeAssignor):
    """An assignor that goes by `facts`, which the leader sets before each round.

    Connectors themselves are divided by their number, as in Kafka.
    """

    def __init__(self, max_delay_ms: int, clock_ms: Callable[[], int]) -> None:
        super().__init__(max_delay_ms, clock_ms)
        self.facts = Facts(names={})
        self.unplaced: dict[Unit, str] = {}
        """The tasks that no worker may have after the last round, with the reasons."""
        self._targets: dict[Unit, str] = {}
        """The workers for which tasks were revoked."""

    def _excess(self, there: set[Unit], loads: Loads) -> Loads:
        excess = surplus(loads, len(of_kind(there, connectors=True)), connectors=True)
        wrong = misplaced(loads, self.facts)
        add(excess, wrong)
        if not wrong:
            self._targets = moves(loads, self.facts)
            owners = {unit: worker for worker, load in loads.items() for unit in load}
            for unit in self._targets:
                add(excess, {owners[unit]: [unit]})
        return excess

    def _place_tasks(self, loads: Loads, tasks: list[Unit]) -> None:
        targets = {unit: worker for unit, worker in self._targets.items() if worker in loads}
        unplaced = place_by_load(loads, tasks, targets, self.facts)
        self.unplaced = {unit: self.facts.reason(unit) for unit in unplaced}
