"""Plans of failovers, drawn from answers of both clusters."""

from __future__ import annotations

import pytest

from kafka_client import OffsetAndMetadata, TopicPartition
from mirror.failover.facts import Facts, LogEnds, SourceFacts, Syncs, TargetGroup
from mirror.failover.group_places import GroupPlace, PlaceState
from mirror.failover.offsets import commits
from mirror.failover.plan import FailoverPlan, MirrorReport, Verdict, make_plan
from mirror.failover.runbook import planned_failover, unplanned_failover
from mirror.failover.uncopied import Uncopied
from mirror.offsets import OffsetSync
from tests.mirror.pair import Pair

NOW = 1_700_000_000.0
TP, REMOTE = TopicPartition("t", 0), TopicPartition("dc1.t", 0)
SYNC = OffsetSync(TP, 90, 80, 100, 90)
"""The first 100 offsets of the source are the target's first 90 records."""
SETTINGS = Pair("dc1:9092", "dc2:9092").link("t")


def facts(*syncs: OffsetSync, **answers: object) -> Facts:
    synced = Syncs()
    for sync in syncs:
        synced.add(sync)
    synced.store.finish_loading()
    defaults = {
        "source": SourceFacts(ends={TP: LogEnds(end=110)}, committed={}),
        "syncs": synced,
        "target_ends": {REMOTE: LogEnds(end=95)},
    }
    return Facts(settings=SETTINGS, now=NOW, **(defaults | answers))  # type: ignore[arg-type]


def test_a_bound_and_a_number() -> None:
    """Five records were copied after the sync, so up to 105, or further if there are gaps."""
    plan = make_plan(facts(SYNC), {})
    (loss,) = plan.partitions
    assert (loss.copied, loss.records, loss.is_exact, loss.seconds) == (105, 5, False, None)
    plan = make_plan(facts(SYNC, uncopied={TP: Uncopied(3, int(NOW * 1000) - 4000)}), {})
    (loss,) = plan.partitions
    assert (loss.records, loss.is_exact, loss.seconds) == (3, True, 4.0)
    assert (plan.records, plan.seconds, plan.verdict) == (3, 4.0, Verdict.LOSES_RECORDS)


def test_a_running_mirror_knows_the_seconds() -> None:
    reports = {TP: MirrorReport(rpo_seconds=2.5, error="NotPassed: too large")}
    (loss,) = make_plan(facts(SYNC), reports).partitions
    assert (loss.records, loss.seconds, loss.error) == (5, 2.5, "NotPassed: too large")
    plan = make_plan(facts(SYNC, source=None, silence="it is away", syncs=None), reports)
    (loss,) = plan.partitions
    assert (loss.tp, loss.records, loss.seconds) == (TP, None, 2.5)
    assert (plan.records, plan.seconds, plan.verdict) == (None, 2.5, Verdict.UNKNOWN)
    (loss,) = make_plan(facts(SYNC, target_ends={REMOTE: LogEnds(end=100)}), reports).partitions
    assert (loss.records, loss.seconds) == (0, 0.0), "all is copied, whatever the mirror knew last"


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"syncs": None}, "the offset syncs cannot be read"),
        ({"target_ends": {REMOTE: LogEnds(error="no leader")}}, "the target does not answer for it: no"),
        ({"target_ends": {REMOTE: LogEnds(end=60)}}, "the target ends at 60, 90 records were copied"),
        (
            {"source": SourceFacts(ends={TP: LogEnds(end=20)}, committed={})},
            "the source ends at 20, it was copied up to 100",
        ),
        (
            {"source": SourceFacts(ends={TP: LogEnds(error="no leader")}, committed={})},
            "the source does not answer for it: no leader",
        ),
    ],
)
def test_what_is_unknown_is_never_zero(answers: dict[str, object], error: str) -> None:
    plan = make_plan(facts(SYNC, **answers), {})
    (loss,) = plan.partitions
    assert (loss.records, loss.seconds, plan.records, plan.seconds) == (None, None, None, None)
    assert plan.verdict is Verdict.UNKNOWN
    assert loss.error.startswith(error)


def test_partitions_that_were_never_copied() -> None:
    (loss,) = make_plan(facts(target_ends={}), {}).partitions
    assert (loss.copied, loss.records, loss.is_exact) == (0, 110, False)
    (loss,) = make_plan(facts(), {}).partitions
    assert loss.records is None
    assert loss.error == "the target has records, and the flow has no offset sync of them"


def test_groups_that_read_copies_go_back_to_the_originals() -> None:
    """The flow dc2->dc1 is planned here, and `t` of dc1 was read in dc2 as `dc1.t`."""
    back = Syncs()
    back.add(OffsetSync(TP, 90, 80, 100, 90, run_start=95))
    back.store.finish_loading()
    settings = Pair("dc1:9092", "dc2:9092").properties("t")
    del settings["dc1->dc2.enabled"]
    from mirror.config import parse_links

    (flow,) = parse_links(settings | {"dc2->dc1.enabled": "true"})
    answers = Facts(
        settings=flow,
        now=NOW,
        source=SourceFacts(
            ends={},
            committed={
                "exact": {REMOTE: OffsetAndMetadata(88)},
                "bounded": {REMOTE: OffsetAndMetadata(83)},
                "older": {REMOTE: OffsetAndMetadata(10)},
                "further": {REMOTE: OffsetAndMetadata(88)},
            },
        ),
        syncs=Syncs(),
        back_syncs=back,
        target_groups={"further": TargetGroup(state="Empty", committed={TP: OffsetAndMetadata(99)})},
    )
    places = {each.group: each for each in make_plan(answers, {}).groups}
    assert {group: (each.remote, each.offset, each.rereads_max) for group, each in places.items()} == {
        "exact": (TP, 98, 0),
        "bounded": (TP, 93, 2),
        "older": (TP, None, None),
        "further": (TP, 99, 0),
    }
    assert places["older"].state is PlaceState.NONE


def place(group: str, **changes: object) -> GroupPlace:
    values = {
        "group": group,
        "tp": TP,
        "remote": REMOTE,
        "state": PlaceState.CURRENT,
        "source_offset": 7,
        "checkpoint_source_offset": 7,
        "checkpoint_seconds": 1.0,
        "committed": None,
        "offset": 7,
        "rereads_max": 0,
        "target_state": "Dead",
    }
    return GroupPlace(**(values | changes))  # type: ignore[arg-type]


def test_only_groups_without_members_get_offsets() -> None:
    planned = commits(
        [
            place("new"),
            place("there", committed=7),
            place("none", offset=None),
            place("busy", committed=3, target_state="Stable"),
        ]
    )
    assert [(each.group, each.replaced, each.why_not) for each in planned] == [
        ("new", {REMOTE: None}, None),
        ("busy", {REMOTE: 3}, "it has members in the target (Stable)"),
    ]


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (PlaceState.STALE, Verdict.SAFE),
        (PlaceState.DELETED, Verdict.SAFE),
        (PlaceState.NONE, Verdict.MISPLACES_GROUPS),
        (PlaceState.AHEAD, Verdict.MISPLACES_GROUPS),
        (PlaceState.UNKNOWN, Verdict.UNKNOWN),
    ],
)
def test_groups_count_in_the_verdict(state: PlaceState, verdict: Verdict) -> None:
    plan = FailoverPlan(
        flow="dc1->dc2", silence=None, heartbeat_seconds=None, partitions=[], groups=[place("g", state=state)]
    )
    assert plan.verdict is verdict


def test_the_runbook_names_what_there_is() -> None:
    planned = planned_failover(SETTINGS, "mm2.properties", ["t"])
    (verify,) = [step.command for step in planned if " verify " in step.command]
    assert verify == "millstream mirror verify --source dc1:9092 --target dc2:9092 --topic t:dc1.t"
    unplanned = unplanned_failover(SETTINGS, "mm2.properties")
    commit = "millstream mirror failover offsets mm2.properties --flow 'dc1->dc2' --execute"
    assert all(commit in [step.command for step in steps] for steps in (planned, unplanned))
