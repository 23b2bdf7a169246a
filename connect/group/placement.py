"""Placement of tasks by their measured load, within each connector's pins and spread. Pure functions.

A task is moved only if the heaviest worker carries much more than the lightest. The move has to make the
heavier of two workers lighter. So with steady loads a second look moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from connect.group.loads import Loads, of_kind
from connect.group.units import Unit

IDLE_COST = 0.01
"""The cost of a task that does nothing, in cores: idle tasks are spread too."""
_TRIGGER, _ENOUGH = 0.3, 0.1
"""The gap between the heaviest and the lightest worker, as a share of the mean: from the first on tasks are
moved, until the second.
"""
_TRIGGER_COST = 0.1
"""The smallest gap for which tasks are moved, in cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A connector's wishes for the places of its tasks."""

    pin: tuple[str, ...] = ()
    """Patterns of addresses or labels; a worker has to match one of them. Empty: any worker."""
    spread: int | None = None
    """How many of the tasks one worker may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts that a placement goes by."""

    names: Mapping[str, frozenset[str]]
    """Each worker's address, host and labels, by its member id."""
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """By connector; one without a rule goes anywhere."""
    costs: Mapping[Unit, float] = field(default_factory=dict)
    """The measured load of tasks, in cores; others are taken as idle."""

    def cost(self, unit: Unit) -> float:
        """Return the cost of a task."""
        return max(self.costs.get(unit, 0.0), 0.0) + IDLE_COST

    def is_pinned_to(self, connector: str, worker: str) -> bool:
        """Return True if a connector's tasks may be on a worker."""
        pin = self.rules.get(connector, Rule()).pin
        names = self.names.get(worker, frozenset())
        return not pin or any(fnmatchcase(name, pattern) for pattern in pin for name in names)

    def may_have(self, load: Iterable[Unit], unit: Unit, worker: str) -> bool:
        """Return True if a worker with this load may have one more task."""
        spread = self.rules.get(unit.connector, Rule()).spread
        return self.is_pinned_to(unit.connector, worker) and (
            spread is None or _count(load, unit.connector) < spread
        )

    def reason(self, unit: Unit) -> str:
        """Return why no worker may have a task."""
        rule = self.rules.get(unit.connector, Rule())
        pinned = [worker for worker in self.names if self.is_pinned_to(unit.connector, worker)]
        if not pinned:
            return f"placement.pin={','.join(rule.pin)}: no worker of the group matches"
        return f"placement.spread={rule.spread}: each of the {len(pinned)} possible workers has as many tasks"


def place_by_load(
    loads: Loads, tasks: Iterable[Unit], targets: Mapping[Unit, str], facts: Facts
) -> list[Unit]:
    """Assign tasks: to their targets where these may have them, else to the lightest possible worker.

    Return those that no worker may have.
    """
    carried = carried_by(loads, facts)
    unplaced: list[Unit] = []
    # Tasks with a target come first, so that no other takes their place.
    for unit in sorted(tasks, key=lambda unit: (unit not in targets, -facts.cost(unit), unit)):
        possible = [worker for worker in loads if facts.may_have(loads[worker], unit, worker)]
        if not possible:
            unplaced.append(unit)
            continue
        target = targets.get(unit)
        worker = target if target in possible else min(possible, key=lambda each: (carried[each], each))
        assert worker is not None
        loads[worker].append(unit)
        carried[worker] += facts.cost(unit)
    return unplaced


def misplaced(loads: Loads, facts: Facts) -> Loads:
    """Return the tasks that are against their connector's rule where they are."""
    wrong: Loads = {}
    for worker, load in loads.items():
        rightful: list[Unit] = []
        for unit in sorted(of_kind(load, connectors=False)):
            if facts.may_have(rightful, unit, worker):
                rightful.append(unit)
            else:
                wrong.setdefault(worker, []).append(unit)
    return wrong


def moves(loads: Loads, facts: Facts) -> dict[Unit, str]:
    """Return the tasks to move for the balance, each with the worker that should have it."""
    planned = {worker: of_kind(load, connectors=False) for worker, load in loads.items()}
    owners = {unit: worker for worker, load in planned.items() for unit in load}
    carried = carried_by(planned, facts)
    mean = sum(carried.values()) / len(carried)
    if max(carried.values()) - min(carried.values()) <= max(_TRIGGER * mean, _TRIGGER_COST):
        return {}
    while (move := _best_move(planned, carried, _ENOUGH * mean, facts)) is not None:
        unit, heavy, light = move
        planned[heavy].remove(unit)
        planned[light].append(unit)
        carried = carried_by(planned, facts)
    targets = {unit: worker for worker, load in planned.items() for unit in load}
    return {unit: worker for unit, worker in targets.items() if owners[unit] != worker}


def carried_by(loads: Loads, facts: Facts) -> dict[str, float]:
    """Return the cost of each worker's tasks."""
    return {worker: sum(map(facts.cost, of_kind(load, connectors=False))) for worker, load in loads.items()}


def _best_move(
    loads: Loads, carried: Mapping[str, float], enough: float, facts: Facts
) -> tuple[Unit, str, str] | None:
    """Return the move that evens a pair of workers best, of the heaviest worker that can give a task up."""
    order = sorted(carried, key=lambda worker: (carried[worker], worker))
    for heavy in reversed(order):
        for light in order:
            gap = carried[heavy] - carried[light]
            if gap <= enough:
                break
            # Half of the gap would be even; a task of nearly the whole gap only swaps the two.
            useful = [
                unit
                for unit in loads[heavy]
                if facts.cost(unit) < 0.9 * gap and facts.may_have(loads[light], unit, light)
            ]
            if useful:
                best = min(useful, key=lambda unit: (abs(facts.cost(unit) - gap / 2), unit))
                return best, heavy, light
    return None


def _count(load: Iterable[Unit], connector: str) -> int:
    return sum(unit.connector == connector and not unit.is_connector for unit in load)
