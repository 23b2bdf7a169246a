"""The runs of one worker of a group, between assignments and changes of configs."""

import pytest

from connect.distributed.local_runs import LocalRuns
from connect.group import Unit
from connect.herder import Herder, Runs, TargetState


def herder_with(*plan: str) -> Herder:
    herder = Herder()
    herder.read(herder.put_connector("a", {"x": "1"}))
    herder.read(herder.put_plan("a", [{"n": each} for each in plan]))
    return herder


def numbers(runs: Runs) -> list[int]:
    return list(runs.tasks)


def test_only_what_is_assigned_runs():
    local = LocalRuns(herder_with("0", "1"))
    assert local.needs_rebalance(), "nothing has been assigned yet"
    local.assign([Unit("a"), Unit("a", 1)])
    assert not local.needs_rebalance()
    assert local.connector("a").connector is not None
    assert numbers(local.tasks("a")) == [1]
    local.revoke([Unit("a", 1)])
    assert local.tasks("a").is_empty
    assert local.connector("b").is_empty


def test_a_changed_task_stops_at_once_and_starts_with_the_next_assignment():
    herder = herder_with("0", "1")
    local = LocalRuns(herder)
    units = [Unit("a"), Unit("a", 0), Unit("a", 1)]
    local.assign(units)
    herder.read(herder.put_plan("a", [{"n": "0"}, {"n": "other"}]))
    assert local.needs_rebalance()
    assert numbers(local.tasks("a")) == [0], "the task whose config is the same goes on"
    local.assign(units)
    assert numbers(local.tasks("a")) == [0, 1]


def test_a_pause_needs_no_rebalance_and_a_stop_does():
    herder = herder_with("0")
    local = LocalRuns(herder)
    local.assign([Unit("a"), Unit("a", 0)])
    herder.read(herder.set_target("a", TargetState.PAUSED))
    assert not local.needs_rebalance()
    assert local.tasks("a").tasks[0].target is TargetState.PAUSED
    herder.read(herder.set_target("a", TargetState.STOPPED))
    assert local.needs_rebalance()
    assert local.tasks("a").is_empty


def test_a_deleted_connector_stops_before_the_rebalance():
    herder = herder_with("0")
    local = LocalRuns(herder)
    local.assign([Unit("a"), Unit("a", 0)])
    herder.read(herder.delete_connector("a"))
    assert local.needs_rebalance()
    assert local.connector("a").is_empty
    assert local.tasks("a").is_empty


def test_a_rate_limit_needs_no_rebalance_and_stops_nothing():
    herder = herder_with("0", "1")
    local = LocalRuns(herder)
    local.assign([Unit("a"), Unit("a", 0), Unit("a", 1)])
    herder.read(herder.put_connector("a", {"x": "1", "rate.limit.bytes.per.second": "5"}))
    herder.read(herder.put_plan("a", herder.config.task_configs("a")))
    assert herder.config.planned_with("a") == herder.config.connectors["a"]
    assert not local.needs_rebalance()
    assert numbers(local.tasks("a")) == [0, 1]
    assert local.tasks("a").tasks[0].task_count == 2


@pytest.mark.parametrize("count", [200, 1000])
def test_a_change_compares_one_connector_however_many_there_are(monkeypatch, count):
    compared: list[str] = []
    plan_of = LocalRuns._plan
    monkeypatch.setattr(LocalRuns, "_plan", lambda self, name: compared.append(name) or plan_of(self, name))
    herder = Herder()
    local = LocalRuns(herder)
    for number in range(count):
        herder.read(herder.put_connector(f"c{number}", {"x": "1"}))
        herder.read(herder.put_plan(f"c{number}", [{"n": "0"}]))
        assert local.needs_rebalance()
    assert len(compared) == 0, "connectors that were never assigned differ by their names alone"
    local.assign([Unit("c0"), Unit("c0", 0)])
    assert not local.needs_rebalance()
    compared.clear()
    herder.read(herder.put_connector("c7", {"x": "2"}))
    herder.read(herder.put_plan("c7", [{"n": "1"}]))
    assert local.needs_rebalance()
    assert local.needs_rebalance()
    assert compared == ["c7"]


def test_a_connector_that_is_as_it_was_assigned_needs_no_rebalance():
    herder = herder_with("0")
    local = LocalRuns(herder)
    local.assign([Unit("a"), Unit("a", 0)])
    herder.read(herder.set_target("a", TargetState.STOPPED))
    assert local.needs_rebalance()
    herder.read(herder.set_target("a", TargetState.STARTED))
    herder.read(herder.put_plan("a", [{"n": "0"}]))
    assert not local.needs_rebalance()
    herder.read(herder.put_connector("b", {}))
    assert local.needs_rebalance()
    herder.read(herder.delete_connector("b"))
    assert not local.needs_rebalance()
