"""Draws from the facts what a failover of a flow would cost now. Without I/O.

What is unknown is None, never 0. Numbers of records are exact or upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kafka_client import TopicPartition
from mirror.failover.facts import Facts, LogEnds
from mirror.failover.group_places import GroupPlace, PlaceState, group_places


class Verdict(StrEnum):
    """The worst that a failover now would do."""

    SAFE = "safe"
    LOSES_RECORDS = "loses records"
    MISPLACES_GROUPS = "misplaces groups"
    """No record is lost, but a group has no place in the target, or one that skips records."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoss:
    """The loss of one partition of the source, if the flow failed over now.

    `seconds` is how old the oldest lost record is, at most. `is_exact` is False if `records` is an upper
    bound. `error` is why something is unknown.
    """

    tp: TopicPartition
    remote: TopicPartition
    source_end: int | None = None
    copied: int | None = None
    """The source offset up to which records are in the target. It may be too low, never too high."""
    records: int | None = None
    is_exact: bool = True
    seconds: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorReport:
    """The answer of the running mirror about a partition: its RPO in seconds, and its error if any."""

    rpo_seconds: float | None
    error: str | None


Reports = Mapping[TopicPartition, MirrorReport]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverPlan:
    """The answers about one flow, without the steps to take (see `runbook`)."""

    flow: str
    silence: str | None
    """Why the source does not answer, None if it does."""
    heartbeat_seconds: float | None
    """Age of the last copied heartbeat: the flow was alive then. None if none was copied."""
    partitions: Sequence[PartitionLoss]
    groups: Sequence[GroupPlace]

    @property
    def records(self) -> int | None:
        """The number of lost records, at most; None if that of a partition is unknown."""
        return _sum([each.records for each in self.partitions]) if self.silence is None else None

    @property
    def seconds(self) -> float | None:
        """The age of the oldest lost record, at most; None if that of a partition is unknown."""
        seconds = [each.seconds for each in self.partitions]
        return None if None in seconds or not seconds else max(filter(None, seconds), default=0.0)

    @property
    def verdict(self) -> Verdict:
        """The worst that a failover would do now. A proven loss counts more than what is unknown."""
        states = {each.state for each in self.groups}
        if any(each.records for each in self.partitions):
            return Verdict.LOSES_RECORDS
        if self.records is None:
            return Verdict.UNKNOWN
        if states & {PlaceState.NONE, PlaceState.AHEAD}:
            return Verdict.MISPLACES_GROUPS
        return Verdict.UNKNOWN if PlaceState.UNKNOWN in states else Verdict.SAFE


def make_plan(facts: Facts, reports: Reports) -> FailoverPlan:
    """Return the plan. `reports` are those of a running mirror, by source partition."""
    beat = facts.heartbeat_ms
    return FailoverPlan(
        flow=facts.settings.name,
        silence=facts.silence,
        heartbeat_seconds=None if beat is None else max(facts.now - beat / 1000, 0.0),
        partitions=sorted(_losses(facts, reports), key=lambda each: each.tp),
        groups=list(group_places(facts)),
    )


def _losses(facts: Facts, reports: Reports) -> Iterator[PartitionLoss]:
    if facts.source is not None:
        for tp, ends in facts.source.ends.items():
            yield _loss(facts, tp, ends, reports.get(tp))
        return
    policy = facts.settings.policy
    for remote in facts.target_ends:
        upstream = policy.upstream_topic(remote.topic)
        tp = TopicPartition(upstream or remote.topic, remote.partition)
        report = reports.get(tp)
        yield PartitionLoss(
            tp=tp,
            remote=remote,
            seconds=None if report is None else report.rpo_seconds,
            error="the source does not answer",
        )


def _loss(facts: Facts, tp: TopicPartition, ends: LogEnds, report: MirrorReport | None) -> PartitionLoss:
    remote = facts.remote(tp)
    copied, error = _copied(facts, tp, ends)
    records, is_exact = None, True
    if error == "" and copied is not None and ends.end is not None:
        counted = facts.uncopied.get(tp)
        records = ends.end - copied if counted is None else counted.records
        is_exact = counted is not None or not records
    reported = "" if report is None or report.error is None else report.error
    return PartitionLoss(
        tp=tp,
        remote=remote,
        source_end=ends.end,
        copied=copied,
        records=records,
        is_exact=is_exact,
        seconds=0.0 if records == 0 else _seconds(facts, tp, report),
        error=error or reported,
    )


def _copied(facts: Facts, tp: TopicPartition, ends: LogEnds) -> tuple[int | None, str]:
    """Return the source offset up to which records are copied, or None and why it is unknown."""
    remote = facts.target_ends.get(facts.remote(tp), LogEnds(end=0))
    if ends.end is None:
        return None, f"the source does not answer for it: {ends.error}"
    if remote.end is None:
        return None, f"the target does not answer for it: {remote.error}"
    if facts.syncs is None:
        return None, "the offset syncs cannot be read"
    sync = facts.syncs.latest.get(tp)
    if sync is None:
        if remote.end > 0:
            return None, "the target has records, and the flow has no offset sync of them"
        return ends.start, ""
    if remote.end < sync.next_downstream:
        return None, f"the target ends at {remote.end}, {sync.next_downstream} records were copied"
    if ends.end < sync.next_upstream:
        return None, f"the source ends at {ends.end}, it was copied up to {sync.next_upstream}"
    return min(sync.next_upstream + remote.end - sync.next_downstream, ends.end), ""


def _seconds(facts: Facts, tp: TopicPartition, report: MirrorReport | None) -> float | None:
    """Return how old the oldest lost record is, at most: by its append time or by the running mirror."""
    counted = facts.uncopied.get(tp)
    if counted is not None and counted.appended_ms is not None:
        return max(facts.now - counted.appended_ms / 1000, 0.0)
    return None if report is None else report.rpo_seconds


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
