"""Comparing topics with their copies, and showing the results."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kafka_client import Client
from millstream.terminal.output import Format, Row
from millstream.terminal.session import Local
from millstream.terminal.status import Partly, Unhealthy
from mirror.verify import ComparedBy, PartitionComparison, TopicComparison, TopicVerification, Unreadable
from mirror.verify.pace import Pace

COLUMNS = (
    "source_topic",
    "target_topic",
    "partition",
    "compared_by",
    "equal",
    "source_records",
    "target_records",
    "source_digest",
    "target_digest",
    "difference",
    "unreadable",
)


def pair(name: str, alias: str) -> tuple[str, str]:
    """Return a topic and its copy's name, from TOPIC or SOURCE:TARGET."""
    topic, colon, remote = name.partition(":")
    return topic, remote if colon else f"{alias}.{topic}" if alias else topic


async def compare_topics(
    local: Local,
    source: Client,
    target: Client,
    pairs: Sequence[tuple[str, str]],
    by: ComparedBy | None,
    rate: int | None,
) -> list[TopicComparison]:
    """Compare each topic with its copy, show the results and return them. `rate` is in bytes/s."""
    comparisons, pace = [], Pace(rate)
    async with source as source_client, target as target_client:
        for topic, remote in pairs:
            verification = await TopicVerification.open(
                source_client, target_client, topic, remote, by=by, pace=pace
            )
            with local.progress(topic, verification.offsets, unit="offsets") as progress:
                comparison = await verification.compare(progress.advance)
            if local.form is Format.TABLE:
                _print(comparison)
            comparisons.append(comparison)
    if local.form is not Format.TABLE:
        local.show((row for each in comparisons for row in _rows(each)), COLUMNS)
    return comparisons


def fail_unless_equal(local: Local, comparisons: Sequence[TopicComparison]) -> None:
    """Raise Unhealthy if topics differ, else Partly if something could not be read, which stderr names."""
    unreadable = [each for comparison in comparisons for each in comparison.unreadable]
    for each in unreadable:
        local.tell(str(each))
    if different := [each.source_topic for each in comparisons if each.equal is False]:
        raise Unhealthy(f"different: {', '.join(different)}")
    if unreadable:
        topics = dict.fromkeys(each.source_topic for each in comparisons if each.unreadable)
        raise Partly(f"not wholly read: {', '.join(topics)}")


def _print(comparison: TopicComparison) -> None:
    verdict = {True: "equal", False: "DIFFERENT", None: "UNKNOWN"}[comparison.equal]
    by = {each.compared_by for each in comparison.partitions}
    what = "records" if by == {ComparedBy.RECORDS} else "keys"
    typer.echo(
        f"{comparison.source_topic} and {comparison.target_topic}: {verdict}, {comparison.records:,} {what}"
    )
    for partition in comparison.partitions:
        typer.echo(f"  {_partition_line(partition)}")


def _partition_line(result: PartitionComparison) -> str:
    what = "records" if result.compared_by is ComparedBy.RECORDS else "keys"
    if result.equal:
        return f"{result.partition:>4}  {result.source_digest}  {result.source_records:,} {what}"
    why = f"; {result.difference}" if result.difference else ""
    if result.equal is None:
        until = "" if result.equal_records is None else f", equal up to record {result.equal_records:,}"
        why = f"; some cannot be read{until}"
    return (
        f"{result.partition:>4}  {result.source_digest} ({result.source_records:,} {what}) is not "
        f"{result.target_digest} ({result.target_records:,} {what}){why}"
    )


def _rows(comparison: TopicComparison) -> list[Row]:
    return [
        {
            "source_topic": comparison.source_topic,
            "target_topic": comparison.target_topic,
            "partition": each.partition,
            "compared_by": each.compared_by.value,
            "equal": each.equal,
            "source_records": each.source_records,
            "target_records": each.target_records,
            "source_digest": each.source_digest,
            "target_digest": each.target_digest,
            "difference": None if each.difference is None else str(each.difference),
            "unreadable": list(map(_unreadable, each.unreadable)),
        }
        for each in comparison.partitions
    ]


def _unreadable(unreadable: Unreadable) -> Row:
    return {
        "side": unreadable.side.value,
        "topic": unreadable.tp.topic,
        "partition": unreadable.tp.partition,
        "first_offset": unreadable.first_offset,
        "last_offset": unreadable.last_offset,
        "reason": unreadable.reason,
    }
