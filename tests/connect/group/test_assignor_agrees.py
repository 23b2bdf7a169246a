"""The assignor and the messages beside Kafka's own classes, on random groups."""

from __future__ import annotations

import json
import random

from connect.group import CONNECTOR, Assignment, CooperativeAssignor, Unit, WorkerState
from tests.support.java import needs_jar, run_program

pytestmark = needs_jar("connect-runtime")
SEQUENCES, ROUNDS = 150, 14
MEMBERS = "abcdefgh"


def units_of(configured: dict[str, int]) -> list[Unit]:
    return [Unit(name, task) for name, tasks in configured.items() for task in range(CONNECTOR, tasks)]


class Group:
    """A group whose members come, leave, miss assignments, and whose connectors change."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 1_000
        self.max_delay = self.random.choice([0, 1, 1_000, 300_000])
        self.assignor = CooperativeAssignor(self.max_delay, lambda: self.now)
        self.members: dict[str, list[Unit]] = {"a": []}
        self.configured: dict[str, int] = {}
        self.generation = self.completed = -1
        self.questions: list[dict] = [{"max_delay": self.max_delay}]
        self.expected: list[dict] = [{}]

    def change(self) -> None:
        rnd = self.random
        self.now += rnd.choice([0, 1, 40, 500, 1_000, 2_000, 100_000, 300_000])
        for _ in range(rnd.choice([0, 0, 1, 1, 2])):
            name = rnd.choice(MEMBERS)
            if name in self.members and len(self.members) > 1:
                del self.members[name]
            else:
                self.members.setdefault(name, [])
        for _ in range(rnd.choice([0, 0, 1, 3])):
            name = rnd.choice(["p", "q", "r", "s", "t"])
            if rnd.random() < 0.3:
                self.configured.pop(name, None)
            else:
                self.configured[name] = rnd.randrange(8)
        if rnd.random() < 0.05:
            one, other = rnd.choice(list(self.members)), rnd.choice(list(self.members))
            extra = [unit for unit in self.members[other] if unit not in self.members[one]]
            self.members[one] = self.members[one] + extra  # two workers have the same

    def round(self) -> None:
        self.change()
        self.members = dict(sorted(self.members.items()))
        self.generation += 1
        self.questions.append(
            {
                "now": self.now,
                "last": self.completed,
                "generation": self.generation,
                "configured": dict(self.configured),
                "members": dict(self.members),
            }
        )
        division = self.assignor.assign(
            units_of(self.configured),
            self.members,
            last_generation=self.completed,
            generation=self.generation,
        )
        self.expected.append(
            {
                "assigned": listed(division.assigned),
                "revoked": listed(division.revoked),
                "delay": division.delay_ms,
            }
        )
        is_delivered = self.random.random() < 0.9
        if is_delivered:
            self.completed = self.generation
        for member, units in self.members.items():
            if is_delivered and self.random.random() < 0.97:
                remaining = [unit for unit in units if unit not in division.revoked.get(member, ())]
                self.members[member] = [*division.assigned.get(member, ()), *remaining]


def listed(loads) -> dict[str, list]:
    order = {worker: sorted(units, key=lambda u: (u.task != CONNECTOR, u)) for worker, units in loads.items()}
    return {worker: [list(unit) for unit in units] for worker, units in sorted(order.items()) if units}


def ask(documents: list[dict]) -> list[dict]:
    printed = run_program("ConnectGroup", stdin="".join(json.dumps(each) + "\n" for each in documents))
    return [json.loads(line) for line in printed.splitlines()]


def test_the_assignor_divides_as_kafkas_does():
    groups = [Group(seed) for seed in range(SEQUENCES)]
    for group in groups:
        for _ in range(ROUNDS):
            group.round()
    answers = iter(ask([document for group in groups for document in group.questions]))
    for seed, group in enumerate(groups):
        for number, expected in enumerate(group.expected):
            assert next(answers) == expected, (seed, number, group.questions[: number + 1])


def test_messages_have_kafkas_bytes():
    units = (Unit("a"), Unit("b"), Unit("a", 0), Unit("a", 2), Unit("c", 1))
    assignments = [
        Assignment(
            version=version,
            error=error,
            leader="leader-1",
            leader_url="http://höst:8083/",
            config_offset=offset,
            units=units[:count],
            revoked=units[count:],
            delay_ms=offset,
        )
        for version in (1, 2)
        for error, offset in ((0, 0), (1, 12_345))
        for count in (0, 2, 5)
    ]
    states = [
        WorkerState(url="http://w:1/", config_offset=offset, assignment=assignment)
        for offset, assignment in enumerate([None, *assignments])
    ]
    eager = Assignment(version=0, leader="l", leader_url="u", config_offset=7, units=units)
    questions = [{"assignment": each.encode().hex()} for each in assignments]
    questions += [
        {"state": state.encode(version).hex(), "sessioned": version == 2}
        for state in states
        for version in (1, 2)
    ]
    questions += [{"eager_state": states[3].encode(0).hex()}, {"eager_assignment": eager.encode().hex()}]
    for question, answer in zip(questions, ask(questions), strict=True):
        (sent,) = [value for key, value in question.items() if key != "sessioned"]
        assert answer["hex"] == sent, answer
    for each in [*assignments, eager]:
        expected = each if each.version else Assignment(**{**fields(each), "revoked": (), "delay_ms": 0})
        decoded = Assignment.decode(each.encode())
        assert (decoded, set(decoded.units)) == (expected, set(expected.units))
    for state in states:
        if state.assignment is None or state.assignment.version == 2:
            assert WorkerState.decode(state.encode(2)) == state


def fields(assignment: Assignment) -> dict:
    return {name: getattr(assignment, name) for name in Assignment.__slots__}
