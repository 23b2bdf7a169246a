"""Reading and showing a plan of a failover."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import typer

from kafka_client import TopicPartition
from kafka_client.errors import KafkaError
from kafka_client.java_properties import read_properties
from millstream.commands.mirror.status import ask, endpoint_of
from millstream.terminal.output import Format, Row
from millstream.terminal.session import Local
from millstream.terminal.status import NotFound, Unreachable
from mirror.config import LinkSettings, parse_http_listener
from mirror.failover.facts import collect_facts
from mirror.failover.group_places import GroupPlace
from mirror.failover.offsets import GroupCommit
from mirror.failover.plan import FailoverPlan, MirrorReport, PartitionLoss, Reports, make_plan
from mirror.failover.runbook import Step, planned_failover, unplanned_failover

PARTITION_COLUMNS = (
    "topic",
    "partition",
    "target_topic",
    "source_end",
    "copied",
    "records_lost",
    "exact",
    "seconds_lost",
    "error",
)
GROUP_COLUMNS = (
    "group",
    "topic",
    "partition",
    "target_topic",
    "source_offset",
    "offset",
    "rereads_max",
    "state",
    "checkpoint_source_offset",
    "checkpoint_seconds",
    "committed",
    "target_state",
)
COMMIT_COLUMNS = ("group", "topic", "partition", "offset", "replaces", "error")


def ask_mirror(local: Local, config: Path, http: str | None, flow: str) -> Reports:
    """Return what the running mirror says of the flow's partitions; nothing if none answers."""
    if http is None and not parse_http_listener(read_properties(config)):
        return {}
    try:
        (facts,) = ask(endpoint_of(config, http), flow)
    except (Unreachable, NotFound) as error:
        local.tell(str(error))
        return {}
    return {
        TopicPartition(each["topic"], each["partition"]): MirrorReport(
            rpo_seconds=each["rpo_seconds"], error=each["error"]
        )
        for each in facts["partitions"]
    }


async def read_plan(settings: LinkSettings, back: LinkSettings | None, reports: Reports) -> FailoverPlan:
    """Ask both clusters and return the plan."""
    return make_plan(await collect_facts(settings, back, time.time()), reports)


def show_plan(local: Local, plan: FailoverPlan, settings: LinkSettings, config: str) -> None:
    """Print the plan and the steps: as text and tables, as rows of partitions, or as one JSON object."""
    partitions, groups = list(map(_partition_row, plan.partitions)), list(map(_group_row, plan.groups))
    steps = steps_of(plan, settings, config)
    if local.form is Format.TABLE:
        for line in _lines(plan):
            typer.echo(line)
        if partitions:
            local.show(partitions, PARTITION_COLUMNS)
        if groups:
            typer.echo()
            local.show(groups, GROUP_COLUMNS)
        typer.echo()
        for line in step_lines(steps):
            typer.echo(line)
    elif local.form is Format.PLAIN:
        local.show(partitions, PARTITION_COLUMNS)
    else:
        row = {
            "flow": plan.flow,
            "verdict": plan.verdict.value,
            "records_lost": plan.records,
            "seconds_lost": _tenths(plan.seconds),
            "source_error": plan.silence,
            "heartbeat_seconds": _tenths(plan.heartbeat_seconds),
            "partitions": partitions,
            "groups": groups,
            "steps": [{"text": step.text, "command": step.command or None} for step in steps],
        }
        local.show_one(row, tuple(row))


def steps_of(plan: FailoverPlan, settings: LinkSettings, config: str) -> Sequence[Step]:
    """Return the runbook for the state of the source."""
    if plan.silence is not None:
        return unplanned_failover(settings, config)
    return planned_failover(settings, config, {each.tp.topic for each in plan.partitions})


def step_lines(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of the numbered steps, each with its command below it."""
    for number, step in enumerate(steps, 1):
        yield f"{number}. {step.text}"
        if step.command:
            yield f"   {step.command}"


def commit_rows(planned: Sequence[GroupCommit], errors: Mapping[str, KafkaError]) -> Iterator[Row]:
    """Yield a row for each offset to commit."""
    for each in planned:
        error = errors.get(each.group) or each.why_not
        for tp, offset in sorted(each.offsets.items()):
            yield {
                "group": each.group,
                "topic": tp.topic,
                "partition": tp.partition,
                "offset": offset.offset,
                "replaces": each.replaced[tp],
                "error": None if error is None else str(error),
            }


def _lines(plan: FailoverPlan) -> Iterator[str]:
    yield f"{plan.flow}: {plan.verdict}; a failover now loses {_loss(plan)}"
    if plan.silence is not None:
        yield f"the source does not answer: {plan.silence}"
    beat = plan.heartbeat_seconds
    yield "no heartbeat was copied" if beat is None else f"the last copied heartbeat is {beat:,.1f} s old"


def _loss(plan: FailoverPlan) -> str:
    minimum = sum(each.records or 0 for each in plan.partitions)
    if plan.records is None:
        records = f"at least {minimum:,} records" if minimum else "an unknown number of records"
    else:
        exact = all(each.is_exact for each in plan.partitions)
        records = f"{'' if exact else 'at most '}{minimum:,} records"
    return f"{records}, {'of unknown age' if plan.seconds is None else f'of the last {plan.seconds:,.1f} s'}"


def _partition_row(loss: PartitionLoss) -> Row:
    return {
        "topic": loss.tp.topic,
        "partition": loss.tp.partition,
        "target_topic": loss.remote.topic,
        "source_end": loss.source_end,
        "copied": loss.copied,
        "records_lost": loss.records,
        "exact": None if loss.records is None else loss.is_exact,
        "seconds_lost": _tenths(loss.seconds),
        "error": loss.error or None,
    }


def _group_row(place: GroupPlace) -> Row:
    return {
        "group": place.group,
        "topic": place.tp.topic,
        "partition": place.tp.partition,
        "target_topic": place.remote.topic,
        "source_offset": place.source_offset,
        "offset": place.offset,
        "rereads_max": place.rereads_max,
        "state": place.state.value,
        "checkpoint_source_offset": place.checkpoint_source_offset,
        "checkpoint_seconds": _tenths(place.checkpoint_seconds),
        "committed": place.committed,
        "target_state": place.target_state,
    }


def _tenths(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
