"""Assignment: balanced, then sticky; and how many partitions internal topics get."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import StreamsBuilder, Topology, TopologyError
from streams.runtime.assignment import MemberState, assign_tasks
from streams.runtime.task import TaskId
from streams.runtime.topics import TopicNames, internal_topics
from streams.topology import partition_counts

TASKS = [TaskId(sub, partition) for sub in range(2) for partition in range(3)]


@given(
    st.sets(st.sampled_from(TASKS)),
    st.dictionaries(st.text(min_size=1), st.frozensets(st.sampled_from(TASKS))),
)
def test_every_task_goes_to_one_member_and_loads_are_even(
    tasks: frozenset[TaskId], running: dict[str, frozenset[TaskId]]
) -> None:
    assigned = assign_tasks(tasks, {name: MemberState(held) for name, held in running.items()})
    if running:
        assert sorted(task for held in assigned.values() for task in held) == sorted(tasks)
        loads = [len(held) for held in assigned.values()]
        assert max(loads) - min(loads) <= 1


def test_tasks_stay_where_they_run() -> None:
    before = assign_tasks(TASKS, {"a": MemberState(), "b": MemberState()})
    after = assign_tasks(TASKS, {name: MemberState(frozenset(held)) for name, held in before.items()})
    assert after == before
    three = {name: MemberState(frozenset(held)) for name, held in before.items()} | {"c": MemberState()}
    with_a_third = assign_tasks(TASKS, three)
    assert set(with_a_third["a"]) < set(before["a"])
    assert len(with_a_third["c"]) == 2


def test_tasks_go_where_their_state_is() -> None:
    members = {"a": MemberState(), "b": MemberState(stored=frozenset(TASKS[:3]))}
    assert assign_tasks(TASKS, members)["b"] == TASKS[:3]


def test_subtopologies_are_spread() -> None:
    assigned = assign_tasks(TASKS[:2] + TASKS[3:5], {"a": MemberState(), "b": MemberState()})
    assert [[task.subtopology for task in held] for held in assigned.values()] == [[0, 1], [0, 1]]


# -- partitions


def joined() -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("flights").join(builder.table("airlines"), lambda a, b: a).to("out")
    return builder.build()


def test_joined_topics_need_the_same_number_of_partitions() -> None:
    with pytest.raises(TopologyError, match=r"(?s)(?=.*'airlines' has 2)(?=.*'flights' has 3)"):
        partition_counts(joined(), {"flights": 3, "airlines": 2})
    assert partition_counts(joined(), {"flights": 3, "airlines": 3}) == {"flights": 3, "airlines": 3}


def test_a_missing_topic_is_named() -> None:
    with pytest.raises(TopologyError, match="'airlines' does not exist"):
        partition_counts(joined(), {"flights": 3})


def test_repartition_topics_follow_the_table_or_their_source() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    rekeyed = builder.stream("a").select_key(lambda k, v: v)
    rekeyed.join(builder.table("t"), lambda a, b: a, name="joined").to("out")
    rekeyed.group_by_key(name="grouped").count(store="counts")
    topology = builder.build()
    counts = partition_counts(topology, {"a": 5, "t": 2})
    assert counts["joined-repartition"] == 2
    assert counts["grouped-repartition"] == 5
    names = TopicNames("app", topology)
    made = {topic.name: topic for topic in internal_topics(topology, names, counts, 1)}
    assert {name: topic.num_partitions for name, topic in made.items()} == {
        "app-joined-repartition": 2,
        "app-grouped-repartition": 5,
        "app-counts-changelog": 5,
        "app-t-STATE-STORE-0000000002-changelog": 2,
    }
    assert made["app-counts-changelog"].configs["cleanup.policy"] == "compact"
