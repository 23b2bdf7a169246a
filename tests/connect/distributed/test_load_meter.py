"""The loads of tasks, as workers measure and report them."""

import pytest

from connect.distributed.load_meter import LoadMeter, Usage
from connect.distributed.placement_facts import PlacementFacts
from connect.group import Assignment, Unit, WorkerState
from connect.group.load_report import LoadReport
from connect.group.placement import Rule

UNIT = Unit("a", 0)


def test_a_load_is_cpu_and_bytes_per_second_of_this_run():
    now = [0.0]
    meter = LoadMeter(lambda: now[0])
    assert meter.measure([(UNIT, 1, Usage(5.0, 10))]) == {}
    now[0] = 20.0
    assert meter.measure([(UNIT, 1, Usage(15.0, 10 + 500_000_000))]) == {UNIT: pytest.approx(1.0)}
    now[0] = 21.0
    assert meter.measure([(UNIT, 1, Usage(16.0, 0))]) == {UNIT: pytest.approx(1.0)}, "too soon"
    assert meter.measure([(UNIT, 2, Usage(0.0, 0))]) == {}, "another run"


def test_a_report_travels_behind_kafkas_fields():
    report = LoadReport(labels=("zone=a",), costs={UNIT: 0.25})
    for assignment in (None, Assignment(units=(UNIT,))):
        plain = WorkerState(url="http://h:1", config_offset=7, assignment=assignment)
        state = WorkerState(url="http://h:1", config_offset=7, assignment=assignment, report=report.encode())
        assert state.encode(2).startswith(plain.encode(2))
        assert LoadReport.decode(WorkerState.decode(state.encode(2)).report) == report
        assert LoadReport.decode(WorkerState.decode(plain.encode(2)).report) == LoadReport()
    assert LoadReport.decode(b"[1]") == LoadReport.decode(b"{") == LoadReport()


def test_a_leader_remembers_the_load_of_a_task_that_moved():
    facts = PlacementFacts()
    connectors = {"a": {"placement.pin": "zone=a, h2"}, "b": {}}
    state = WorkerState(url="http://h:1", config_offset=0, report=LoadReport(costs={UNIT: 2.0}).encode())
    first = facts.update({"m": state}, [UNIT], connectors)
    assert first.costs == {UNIT: 2.0}
    assert first.names == {"m": {"h:1", "h"}}
    assert first.rules == {"a": Rule(pin=("zone=a", "h2"))}
    silent = WorkerState(url="http://h:1", config_offset=0)
    assert facts.update({"m": silent}, [UNIT], connectors).costs == {UNIT: 2.0}
    assert facts.update({"m": silent}, [], {}).costs == {}
