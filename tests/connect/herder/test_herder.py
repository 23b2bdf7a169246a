"""The herder: the runs that follow from requests and plans, in any order."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from connect.errors import NotFound
from connect.herder import Herder, TargetState
from connect.herder.runs import Runs

STARTED, PAUSED, STOPPED = TargetState
NAMES = st.sampled_from(["a", "b-0"])


def herder_with(name="a", tasks=2, **config) -> Herder:
    herder = Herder()
    herder.read(herder.put_connector(name, config))
    herder.read(herder.put_plan(name, [{"n": str(n)} for n in range(tasks)]))
    return herder


def test_a_request_changes_nothing_before_its_records_are_read():
    herder = Herder()
    records = herder.put_connector("a", {"x": "1"})
    assert herder.runs("a") == Runs()
    assert herder.read(records) == ["a"]
    assert herder.runs("a").connector.config == {"x": "1"}


def test_an_equal_plan_writes_nothing_and_one_after_a_change_of_config_does():
    herder = herder_with(x="1")
    plan = [{"n": "0"}, {"n": "1"}]
    assert herder.put_plan("a", plan) == []
    herder.read(herder.put_connector("a", {"x": "2"}))
    before = herder.runs("a").tasks[0]
    assert before.connector_config == {"x": "1"}, "the running tasks have the old config until the next plan"
    herder.read(herder.put_plan("a", plan))
    after = herder.runs("a").tasks[0]
    assert after.connector_config == {"x": "2"}
    assert not after.continues(before)


def test_stop_removes_the_tasks_and_resume_needs_a_plan():
    herder = herder_with()
    herder.read(herder.set_target("a", STOPPED))
    assert (herder.runs("a").connector.target, herder.runs("a").tasks) == (STOPPED, {})
    assert herder.put_plan("a", [{"n": "0"}]) == [], "a plan that was under way comes too late"
    herder.read(herder.set_target("a", STARTED))
    assert herder.runs("a").tasks == {}
    herder.read(herder.put_plan("a", [{"n": "0"}]))
    assert len(herder.runs("a").tasks) == 1


def test_a_stop_is_written_as_kafka_writes_it():
    assert herder_with().set_target("a", STOPPED) == [
        ("commit-a", {"tasks": 0}),
        ("target-state-a", {"state": "PAUSED", "state.v2": "STOPPED"}),
    ]


def test_a_restart_starts_what_it_names_again_and_keeps_the_target():
    herder = herder_with()
    herder.read(herder.set_target("a", PAUSED))
    before = herder.runs("a")
    herder.restart("a", [1], connector=False)
    after = herder.runs("a")
    assert after.connector == before.connector
    assert after.tasks[0] == before.tasks[0]
    assert not after.tasks[1].continues(before.tasks[1])
    assert after.tasks[1].target is PAUSED


@pytest.mark.parametrize("number", [-1, 2])
def test_what_does_not_exist_is_refused(number):
    herder = herder_with()
    with pytest.raises(NotFound, match="no task"):
        herder.restart("a", [number], connector=False)
    for request in (herder.delete_connector, lambda name: herder.set_target(name, PAUSED)):
        with pytest.raises(NotFound, match="no connector b"):
            request("b")


class AnyOrder(RuleBasedStateMachine):
    """Requests in any order: each has an answer, and what should run agrees with what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.herder = Herder()
        self.configs: dict[str, dict[str, str]] = {}
        self.targets: dict[str, TargetState] = {}
        self.plans: dict[str, list[dict[str, str]]] = {}

    @rule(name=NAMES, x=st.sampled_from("12"))
    def put(self, name, x):
        self.herder.read(self.herder.put_connector(name, {"x": x}))
        self.configs[name] = {"x": x}
        self.targets.setdefault(name, STARTED)
        self.plans.setdefault(name, [])

    @rule(name=NAMES, count=st.integers(0, 3))
    def plan(self, name, count):
        plan = [{"n": str(n)} for n in range(count)]
        self.herder.read(self.herder.put_plan(name, plan))
        if self.targets.get(name, STOPPED) is not STOPPED:
            self.plans[name] = plan

    @rule(name=NAMES, state=st.sampled_from(TargetState))
    def set_target(self, name, state):
        if name not in self.configs:
            with pytest.raises(NotFound):
                self.herder.set_target(name, state)
            return
        self.herder.read(self.herder.set_target(name, state))
        self.targets[name] = state
        if state is STOPPED:
            self.plans[name] = []

    @precondition(lambda self: self.configs)
    @rule(data=st.data())
    def delete(self, data):
        name = data.draw(st.sampled_from(sorted(self.configs)))
        self.herder.read(self.herder.delete_connector(name))
        for each in (self.configs, self.targets, self.plans):
            del each[name]

    @rule(name=NAMES)
    def restart(self, name):
        before = self.herder.runs(name)
        if name in self.configs:
            self.herder.restart(name, before.tasks, connector=True)
            assert not self.herder.runs(name).connector.continues(before.connector)

    @invariant()
    def runs_as_asked(self):
        for name in ("a", "b-0"):
            runs = self.herder.runs(name)
            if name not in self.configs:
                assert runs == Runs()
                continue
            assert (runs.connector.config, runs.connector.target) == (self.configs[name], self.targets[name])
            assert [runs.tasks[n].config for n in range(len(runs.tasks))] == self.plans[name]
            assert all(task.target is self.targets[name] for task in runs.tasks.values())


TestAnyOrder = AnyOrder.TestCase
