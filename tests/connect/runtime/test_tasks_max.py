"""`tasks.max.enforce` (KIP-1004): the parts of Kafka's testTasksMaxEnforcement."""

import logging
from types import SimpleNamespace

import pytest

from connect.errors import ConnectError
from connect.herder.runs import TargetState, TaskRun
from connect.runtime.connector_check import check_config
from connect.runtime.task_maker import TaskMaker
from connect.runtime.tasks_max import TasksMax
from connect.runtime.unmade_task import UnmadeTask
from tests.connect.test_connector import Growing, Standalone, parts

KAFKAS = (
    "The connector c has generated 2 tasks, which is greater than 1, the maximum number of tasks it is "
    "configured to create. "
)


def test_the_limit_and_its_enforcement_are_the_connectors():
    config = {"name": "c", "connector.class": "x"}
    assert TasksMax.of(config) == TasksMax(1, True)
    assert TasksMax.of({**config, "tasks.max": "3", "tasks.max.enforce": "false"}) == TasksMax(3, False)


def test_more_tasks_are_refused_with_kafkas_words_or_warned_of(caplog):
    TasksMax(1).check("c", 1)
    with pytest.raises(ConnectError, match=KAFKAS):
        TasksMax(1).check("c", 2)
    with caplog.at_level(logging.WARNING):
        TasksMax(1, is_enforced=False).check("c", 2)
    assert KAFKAS in caplog.text


@pytest.mark.parametrize("is_enforced", ["true", "false"])
async def test_a_plan_of_too_many_tasks(harness, fake_producer, monkeypatch, is_enforced):
    monkeypatch.setattr(Growing, "tables", ("a", "b"))
    standalone = Standalone(harness, Growing, monkeypatch, **{"tasks.max.enforce": is_enforced})
    await standalone.start()
    connector = standalone.connector
    if is_enforced == "true":
        assert connector.status.state == "FAILED" and KAFKAS in connector.status.trace
        assert connector.tasks == []
    else:
        assert connector.status.state == "RUNNING"
        assert len(connector.tasks) == 2
    await connector.close()


@pytest.mark.parametrize("is_enforced", ["true", "false"])
async def test_committed_tasks_that_are_too_many(harness, monkeypatch, is_enforced):
    """A worker that was upgraded finds them in the config topic."""
    monkeypatch.setattr("connect.runtime.connector_check.connector_class", lambda name: Growing)
    raw = {"name": "c", "connector.class": "x", "tasks.max.enforce": is_enforced}
    own = parts(harness, SimpleNamespace(take_plan=lambda name, configs: None, restart_expired=None))
    maker = TaskMaker(own, check_config(own.config, raw), 0, lambda: None)
    task = await maker.make(TaskRun(raw, raw, TargetState.STARTED, 0, 2), lambda: None)
    maker.calls.close()
    assert isinstance(task, UnmadeTask) == (is_enforced == "true")
