"""Placement by load keeps pins and spreads, moves little, and comes to rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connect.group import Unit
from connect.group.load_assignor import LoadAssignor
from connect.group.placement import Facts, Rule, carried_by, misplaced, moves

WORKERS = ["w0", "w1", "w2", "w3"]
NAMES = {
    worker: frozenset((f"{worker}:8083", worker, "zone=a" if n % 2 else "zone=b"))
    for n, worker in enumerate(WORKERS)
}
RULES = st.fixed_dictionaries(
    {},
    optional={
        "p": st.sampled_from([Rule(pin=("zone=a",)), Rule(spread=1), Rule(pin=("w0", "w1:*"), spread=2)]),
        "q": st.sampled_from([Rule(pin=("nobody",)), Rule(spread=2)]),
    },
)
COSTS = st.lists(st.floats(0, 4), min_size=1, max_size=16)


class Group:
    """A group that goes through rounds until no round revokes anything."""

    def __init__(self, facts: Facts, units: list[Unit], workers: list[str]) -> None:
        self.assignor = LoadAssignor(0, lambda: 0)
        self.assignor.facts = facts
        self.units = units
        self.members: dict[str, list[Unit]] = {worker: [] for worker in workers}
        self.generation = -1

    def round(self) -> set[Unit]:
        """Go through one round, and return what it revokes."""
        division = self.assignor.assign(
            self.units, self.members, last_generation=self.generation, generation=self.generation + 1
        )
        self.generation += 1
        for worker, load in self.members.items():
            load[:] = [unit for unit in load if unit not in division.revoked.get(worker, ())]
            load += division.assigned.get(worker, ())
        return {unit for units in division.revoked.values() for unit in units}

    def rest(self) -> int:
        """Go through rounds until two in a row change nothing; return how many tasks were revoked."""
        revoked, quiet = 0, 0
        for _ in range(60):
            ended = self.round()
            revoked += len(ended)
            quiet = 0 if ended else quiet + 1
            if quiet == 2:
                return revoked
        raise AssertionError("it goes on moving tasks")


def tasks(name: str, count: int) -> list[Unit]:
    return [Unit(name), *(Unit(name, number) for number in range(count))]


def facts(costs: list[float], units: list[Unit], rules: dict[str, Rule] | None = None) -> Facts:
    of = {unit: costs[n % len(costs)] for n, unit in enumerate(units) if not unit.is_connector}
    return Facts(names=NAMES, rules=rules or {}, costs=of)


@given(COSTS, COSTS, RULES, st.integers(0, 6), st.integers(0, 6), st.integers(1, 4))
def test_it_comes_to_rest_within_the_rules_whatever_the_loads(before, after, rules, p, q, workers):
    units = [*tasks("p", p), *tasks("q", q), *tasks("r", 5)]
    group = Group(facts(before, units, rules), units, WORKERS[:workers])
    group.rest()
    group.assignor.facts = facts(after, units, rules)
    group.rest()
    assert not misplaced(group.members, group.assignor.facts)
    running = [unit for load in group.members.values() for unit in load]
    assert len(running) == len(set(running))
    assert set(running) | group.assignor.unplaced.keys() == set(units)
    for unit in group.assignor.unplaced:
        for worker, load in group.members.items():
            assert not group.assignor.facts.may_have(load, unit, worker)


@given(COSTS, st.integers(2, 4))
def test_a_move_never_makes_the_heaviest_worker_heavier(costs, workers):
    units = tasks("r", len(costs))
    measured = facts(costs, units)
    loads = {worker: units[n::workers] for n, worker in enumerate(WORKERS[:workers])}
    before = carried_by(loads, measured)
    planned = moves(loads, measured)
    moved = {
        worker: [u for u in load if u not in planned] + [u for u, to in planned.items() if to == worker]
        for worker, load in loads.items()
    }
    after = carried_by(moved, measured)
    assert max(after.values()) <= max(before.values()) + 1e-9
    assert moves(moved, measured) == {}, "a second look moves nothing"


def test_one_heavy_task_moves_the_others_and_not_itself_back_and_forth():
    units = tasks("r", 4)
    group = Group(facts([0.0], units), units, WORKERS[:2])
    group.rest()
    assert sorted(len([u for u in load if not u.is_connector]) for load in group.members.values()) == [2, 2]
    group.assignor.facts = Facts(
        names=NAMES, costs={Unit("r", 0): 3.0, **{Unit("r", n): 0.5 for n in (1, 2, 3)}}
    )
    assert group.rest() == 1
    carried = sorted(carried_by(group.members, group.assignor.facts).values())
    assert [round(each, 1) for each in carried] == [1.5, 3.0]


def test_small_differences_move_nothing():
    units = tasks("r", 4)
    group = Group(facts([0.5], units), units, WORKERS[:2])
    group.rest()
    group.assignor.facts = facts([0.5, 0.55, 0.45, 0.6], units)
    assert group.rest() == 0


def test_a_pin_that_nobody_meets_leaves_its_tasks_without_a_worker_and_says_why():
    units = tasks("p", 3)
    group = Group(Facts(names=NAMES, rules={"p": Rule(pin=("w1:*",), spread=2)}), units, WORKERS[:1])
    group.rest()
    group.assignor.facts = Facts(names={"w0": NAMES["w0"]}, rules={"p": Rule(pin=("w1:*",), spread=2)})
    group.rest()
    assert group.assignor.unplaced[Unit("p", 0)] == "placement.pin=w1:*: no worker of the group matches"
    group.members["w1"] = []
    group.assignor.facts = Facts(names=NAMES, rules={"p": Rule(pin=("w1:*",), spread=2)})
    group.rest()
    assert [unit for unit in group.members["w1"] if not unit.is_connector] == [Unit("p", 0), Unit("p", 1)]
    assert group.assignor.unplaced.keys() == {Unit("p", 2)}
    assert "placement.spread=2" in group.assignor.unplaced[Unit("p", 2)]
