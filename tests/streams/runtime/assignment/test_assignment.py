"""Assignment: balanced, sticky, in steps; and how many partitions internal topics get."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import SessionWindows, StreamsBuilder, TimeWindows, Topology, TopologyError, UnlimitedWindows
from streams.runtime.assignment.assignment import Member, Plan, Rules, Share, assign_tasks
from streams.runtime.task_id import TaskId
from streams.runtime.topics import TopicNames, internal_topics
from streams.topology import partition_counts

TASKS = [TaskId(sub, partition) for sub in range(2) for partition in range(3)]
SIZE = 1_000_000


@dataclass
class Group:
    """Instances that do as they are told: what each runs and keeps, and how far its state is."""

    tasks: Collection[TaskId]
    stateful: Collection[TaskId]
    rules: Rules
    active: dict[str, set[TaskId]] = field(default_factory=dict)
    standby: dict[str, set[TaskId]] = field(default_factory=dict)
    lags_of: dict[str, dict[TaskId, int]] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[TaskId, int]:
        return dict.fromkeys(self.stateful, SIZE)

    def members(self) -> dict[str, Member]:
        return {
            name: Member(
                frozenset(self.active[name]),
                frozenset(self.standby[name]),
                {**self.lags_of[name], **dict.fromkeys(self.active[name] & set(self.stateful), 0)},
            )
            for name in self.active
        }

    def join(self, *names: str) -> None:
        for name in names:
            self.active[name], self.standby[name] = set(), set()
            self.lags_of.setdefault(name, {})

    def leave(self, name: str) -> None:
        """Its state stays on its disk."""
        for task in self.active.pop(name):
            self.lags_of[name][task] = 0
        del self.standby[name]

    def rebalance(self) -> Plan:
        """Everybody gives up first what it has to, and takes what it is given only then."""
        members = self.members()
        plan = assign_tasks(self.tasks, self.sizes, members, self.rules)
        check(plan, members, self)
        for name, share in plan.shares.items():
            for task in self.active[name] - set(share.active):
                self.lags_of[name][task] = 0
            self.active[name], self.standby[name] = set(share.active), set(share.standby)
        return plan

    def warm_up(self) -> None:
        """Standbys catch up."""
        for name, tasks in self.standby.items():
            self.lags_of[name].update(dict.fromkeys(tasks, 0))

    def settle(self) -> int:
        """Rebalance and warm up until nothing changes; how many rebalances that took."""
        for count in range(100):
            before = self.members()
            plan = self.rebalance()
            self.warm_up()
            if (
                not plan.probing
                and before == self.members()
                and not any(s.revoked for s in plan.shares.values())
            ):
                return count
        raise AssertionError("it does not come to rest")


def check(plan: Plan, members: Mapping[str, Member], group: Group) -> None:
    """Check what holds of every assignment."""
    assert plan.shares.keys() == members.keys()
    active = [task for share in plan.shares.values() for task in share.active]
    assert len(active) == len(set(active)), "no task twice"
    waiting = {task for share in plan.shares.values() for task in share.revoked}
    assert sorted({*active, *waiting}) == sorted(group.tasks), "each runs, or is about to"
    for name, share in plan.shares.items():
        assert not set(share.active) & set(share.standby), "no standby beside its active"
        assert set(share.warmup) <= set(share.standby) <= set(group.stateful)
        assert not set(share.revoked) & set(share.active)
        assert set(share.revoked) <= members[name].active
        for task in share.active:
            assert not any(task in other.active for n, other in members.items() if n != name)
    warmups = sum(len(share.warmup) for share in plan.shares.values())
    if group.rules.standbys == 0:
        assert warmups <= group.rules.warmups


groups = st.builds(
    lambda tasks, stateful, names, standbys, warmups: (
        Group(
            tasks,
            [task for task in tasks if task.subtopology in stateful],
            Rules(standbys=standbys, warmups=warmups),
        ),
        names,
    ),
    st.lists(st.builds(TaskId, st.integers(0, 2), st.integers(0, 7)), unique=True),
    st.sets(st.integers(0, 2)),
    st.lists(st.sampled_from("abcdef"), unique=True, min_size=1),
    st.integers(0, 2),
    st.integers(1, 3),
)


@given(groups, st.lists(st.sampled_from("abcdef")))
def test_a_group_comes_to_rest_evenly_whoever_comes_and_goes(
    made: tuple[Group, list[str]], changes: list[str]
) -> None:
    group, names = made
    group.join(*names)
    for name in [None, *changes]:
        if name in group.active and len(group.active) > 1:
            group.leave(name)
        elif name is not None and name not in group.active:
            group.join(name)
        before = {n: set(tasks) for n, tasks in group.active.items()}
        group.settle()
        loads = [len(tasks) for tasks in group.active.values()]
        assert max(loads) - min(loads) <= 1
        with_state = [len(tasks & set(group.stateful)) for tasks in group.active.values()]
        assert max(with_state) - min(with_state) <= 1
        for task in group.stateful:
            copies = [n for n in group.active if task in group.active[n] | group.standby[n]]
            assert len(copies) == min(1 + group.rules.standbys, len(group.active))
        if name is None or name not in group.active:
            continue
        moved = sum(len(tasks - group.active[n]) for n, tasks in before.items())
        assert moved <= -(-len(group.tasks) // len(loads)) + 1, "of a newcomer's share, and no more"
        again = {n: set(tasks) for n, tasks in group.active.items()}
        assert group.settle() == 0
        assert group.active == again, "nothing moves without a reason"


@given(groups)
def test_every_leader_decides_alike(made: tuple[Group, list[str]]) -> None:
    group, names = made
    group.join(*names)
    group.rebalance()
    members = group.members()
    backwards = dict(reversed(members.items()))
    tasks = list(reversed(list(group.tasks)))
    assert assign_tasks(tasks, group.sizes, backwards, group.rules) == assign_tasks(
        group.tasks, group.sizes, members, group.rules
    )


def shares(
    members: Mapping[str, Member], stateful: Collection[TaskId] = (), **rules: int
) -> Mapping[str, Share]:
    return assign_tasks(TASKS, dict.fromkeys(stateful, SIZE), members, Rules(**rules)).shares


def test_a_task_is_given_up_before_it_is_given() -> None:
    """KIP-429: two rebalances, and in the first nobody gets what another still runs."""
    first = shares({"a": Member(frozenset(TASKS)), "b": Member()})
    assert len(first["a"].active) == 3
    assert sorted(first["a"].active + first["a"].revoked) == TASKS
    assert (first["b"].active, first["b"].pending) == ([], True)
    second = shares({"a": Member(frozenset(first["a"].active)), "b": Member()})
    assert second["a"].active == first["a"].active
    assert second["b"].active == first["a"].revoked
    assert not second["b"].pending


def test_of_two_that_claim_a_task_one_gives_it_up() -> None:
    """Neither is given to a third, nor to the other, before."""
    both = shares({"a": Member(frozenset(TASKS)), "b": Member(frozenset(TASKS))})
    for task in TASKS:
        assert (task in both["a"].active) != (task in both["b"].active)
        assert (task in both["a"].revoked) != (task in both["b"].revoked)


def test_tasks_go_where_their_state_is() -> None:
    members = {"a": Member(), "b": Member(lags=dict.fromkeys(TASKS[:3], 5))}
    assert shares(members, TASKS)["b"].active == TASKS[:3]


def test_subtopologies_are_spread() -> None:
    plan = assign_tasks(TASKS[:2] + TASKS[3:5], {}, {"a": Member(), "b": Member()}, Rules())
    assert [[task.subtopology for task in share.active] for share in plan.shares.values()] == [[0, 1], [0, 1]]


def test_of_each_subtopology_some_move_to_a_newcomer() -> None:
    tasks = [TaskId(sub, partition) for sub in range(2) for partition in range(4)]
    plan = assign_tasks(tasks, {}, {"a": Member(frozenset(tasks)), "b": Member()}, Rules())
    assert [task.subtopology for task in plan.shares["a"].active] == [0, 0, 1, 1]


def test_a_task_stays_until_its_state_is_warmed_up() -> None:
    """KIP-441: of three that are to move two begin, as `max.warmup.replicas` says, and run where they ran."""
    members = {"a": Member(frozenset(TASKS), lags=dict.fromkeys(TASKS, 0)), "b": Member()}
    first = assign_tasks(TASKS, dict.fromkeys(TASKS, SIZE), members, Rules())
    assert first.probing
    assert first.shares["a"] == Share(active=TASKS)
    warm = first.shares["b"].warmup
    assert len(warm) == 2
    assert first.shares["b"] == Share(standby=warm, warmup=warm)
    members["b"] = Member(standby=frozenset(warm), lags={warm[0]: 10_000, warm[1]: 10_001})
    second = assign_tasks(TASKS, dict.fromkeys(TASKS, SIZE), members, Rules())
    assert second.shares["a"].revoked == warm[:1]
    assert second.shares["b"].pending
    assert warm[0] in second.shares["b"].standby, "it goes on while the other gives the task up"
    assert warm[1] in second.shares["b"].warmup
    assert len(second.shares["b"].warmup) == 2, "the third begins"


def test_small_state_moves_at_once() -> None:
    members = {"a": Member(frozenset(TASKS), lags=dict.fromkeys(TASKS, 0)), "b": Member()}
    plan = assign_tasks(TASKS, dict.fromkeys(TASKS, 10_000), members, Rules())
    assert not plan.probing
    assert len(plan.shares["a"].revoked) == 3


def test_a_standby_takes_over() -> None:
    """Its state is near enough; the third, which would have room, gets a warm-up."""
    members = {"b": Member(standby=frozenset(TASKS), lags=dict.fromkeys(TASKS, 100)), "c": Member()}
    plan = shares(members, TASKS, standbys=1)
    assert plan["b"].active == TASKS
    assert plan["c"].standby == TASKS


def test_without_any_state_a_task_goes_where_there_is_room() -> None:
    plan = assign_tasks(TASKS, dict.fromkeys(TASKS, SIZE), {"a": Member(), "b": Member()}, Rules())
    assert not plan.probing
    assert [len(share.active) for share in plan.shares.values()] == [3, 3]


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


def test_only_what_is_forgotten_by_time_may_be_deleted_from() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(TimeWindows(10)).count(store="windows")
    grouped.windowed_by(UnlimitedWindows()).count(store="unlimited")
    grouped.windowed_by(SessionWindows(10)).count(store="sessions")
    topology = builder.build()
    topics = internal_topics(topology, TopicNames("app", topology), {"in": 1}, 1)
    policies = {topic.name: topic.configs["cleanup.policy"] for topic in topics}
    assert policies == {
        "app-windows-changelog": "compact,delete",
        "app-unlimited-changelog": "compact",
        "app-sessions-changelog": "compact,delete",
    }
    for topic in topics:
        if policies[topic.name] != "compact":
            assert (topic.configs["retention.ms"], topic.configs["retention.bytes"]) == ("-1", "-1")
