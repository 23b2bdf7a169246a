"""The config topic's records and what they add up to, by the rules of Kafka's KafkaConfigBackingStore."""

import pytest

from connect.herder import ConfigState, TargetState


def state_of(*records) -> ConfigState:
    state = ConfigState()
    for key, value in records:
        state.apply(key, value)
    return state


def config(**properties):
    return {"properties": properties}


def test_task_configs_count_once_they_are_committed():
    state = state_of(("connector-a", config(x="1")), ("task-a-0", config(n="0")), ("task-a-1", config(n="1")))
    assert state.task_configs("a") == []
    assert state.apply("commit-a", {"tasks": 2}) == "a"
    assert state.task_configs("a") == [{"n": "0"}, {"n": "1"}]
    assert state.planned_with("a") == {"x": "1"}
    state.apply("task-a-0", config(n="2"))
    assert state.task_configs("a")[0] == {"n": "0"}, "the new plan is not committed"


def test_a_commit_of_more_tasks_than_there_are_leaves_none_until_the_next_plan():
    state = state_of(("connector-a", config()), ("task-a-1", config(n="1")), ("commit-a", {"tasks": 2}))
    assert (state.task_configs("a"), state.is_incomplete("a")) == ([], True)
    state.apply("task-a-0", config(n="0"))
    state.apply("commit-a", {"tasks": 1})
    assert (state.task_configs("a"), state.is_incomplete("a")) == ([{"n": "0"}], False)


def test_a_plan_of_fewer_tasks_drops_the_others():
    state = state_of(
        ("connector-a", config()),
        ("task-a-0", config(n="0")),
        ("task-a-1", config(n="1")),
        ("commit-a", {"tasks": 2}),
        ("task-a-0", config(n="2")),
        ("commit-a", {"tasks": 1}),
    )
    assert state.task_configs("a") == [{"n": "2"}]


def test_a_name_may_have_dashes_and_look_like_another_key():
    state = state_of(
        ("connector-my-files-1", config(x="1")),
        ("task-my-files-1-0", config(n="0")),
        ("commit-my-files-1", {"tasks": 1}),
        ("target-state-my-files-1", {"state": "PAUSED"}),
    )
    assert state.task_configs("my-files-1") == [{"n": "0"}]
    assert state.target("my-files-1") is TargetState.PAUSED


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ({"state": "PAUSED", "state.v2": "STOPPED"}, TargetState.STOPPED),
        ({"state": "PAUSED"}, TargetState.PAUSED),
        ({"state": "STARTED", "state.v2": "STARTED"}, TargetState.STARTED),
        (None, TargetState.STARTED),
        ({"state": "ASLEEP"}, TargetState.PAUSED),
        ({}, TargetState.PAUSED),
    ],
    ids=str,
)
def test_the_target_state_is_that_of_the_last_readable_record(value, target):
    state = state_of(("connector-a", config()), ("target-state-a", {"state": "PAUSED"}))
    state.apply("target-state-a", value)
    assert state.target("a") is target


def test_a_deleted_connector_leaves_nothing():
    state = state_of(
        ("connector-a", config(x="1")),
        ("task-a-0", config()),
        ("commit-a", {"tasks": 1}),
        ("target-state-a", {"state": "PAUSED"}),
    )
    assert state.apply("connector-a", None) == "a"
    assert state.apply("target-state-a", None) == "a"
    state.apply("connector-a", config(x="2"))
    assert (state.task_configs("a"), state.target("a"), state.planned_with("a")) == (
        [],
        TargetState.STARTED,
        None,
    )


def test_a_connector_created_again_is_incomplete_until_its_tasks_are_committed():
    """A deleted connector is still known to lack task configs, as in Kafka."""
    state = state_of(("connector-a", config()), ("task-a-1", config(n="1")), ("commit-a", {"tasks": 2}))
    assert state.incomplete() == {"a"}
    state.apply("connector-a", None)
    state.apply("connector-a", config(x="2"))
    assert (state.incomplete(), state.task_configs("a")) == ({"a"}, [])
    state.apply("task-a-0", config(n="2"))
    state.apply("commit-a", {"tasks": 1})
    assert (state.incomplete(), state.task_configs("a")) == (set(), [{"n": "2"}])


def test_a_connector_created_again_fences_the_tasks_of_the_deleted_one():
    """Its plans have generations of their own: a task of the deleted one cannot pass for one of its own."""
    plan = (("task-a-0", config(n="0")), ("commit-a", {"tasks": 1}))
    state = state_of(("connector-a", config()), *plan)
    assert (state.generation("a"), state.is_pending_fencing("a")) == (0, True)
    state.apply("connector-a", None)
    assert state.is_pending_fencing("a"), "nobody has fenced its tasks"
    for key, value in (("connector-a", config()), *plan):
        state.apply(key, value)
    assert (state.generation("a"), state.is_pending_fencing("a")) == (1, True)
    state.apply("tasks-fencing-a", {"task-count": 1})
    state.apply("connector-a", None)
    assert (state.fenced_task_count("a"), state.is_pending_fencing("a")) == (1, False)


def test_a_commit_that_is_read_again_without_its_task_configs_commits_those_of_before():
    """So a topic that has lost its oldest records stops no task."""
    state = state_of(("connector-a", config()), ("task-a-0", config(n="0")), ("commit-a", {"tasks": 1}))
    state.note_loss()
    state.apply("commit-a", {"tasks": 1})
    assert (state.task_configs("a"), state.is_incomplete("a")) == ([{"n": "0"}], False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connector-a", {}),
        ("connector-a", {"properties": "no map"}),
        ("connector-a", []),
        ("task-a", {"properties": {}}),
        ("task-a-b", {"properties": {}}),
        ("task-a-0", {"properties": None}),
        ("commit-a", {"tasks": "many"}),
        ("commit-a", {}),
        ("target-state-a", {"state": 5}),
        ("nothing-known", {}),
    ],
    ids=str,
)
def test_a_record_that_cannot_be_read_changes_nothing(key, value, caplog):
    state = state_of(("connector-a", config(x="1")), ("task-a-0", config()), ("commit-a", {"tasks": 1}))
    assert state.apply(key, value) is None
    assert state.connectors == {"a": {"x": "1"}}
    assert state.task_configs("a") == [{}]
    assert key in caplog.text or key == "nothing-known"
