"""Comparing topics with their copies, and showing the results."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kafka_client import Client
from millstream.terminal.output import Format, Row
from millstream.terminal.session import Local
from mirror.verify import PartitionComparison, TopicComparison, verify_topic

COLUMNS = (
    "source_topic",
    "target_topic",
    "partition",
    "equal",
    "source_records",
    "target_records",
    "source_digest",
    "target_digest",
    "difference",
)


def pair(name: str, alias: str) -> tuple[str, str]:
    """Return a topic and its copy's name, from TOPIC or SOURCE:TARGET."""
    topic, colon, remote = name.partition(":")
    return topic, remote if colon else f"{alias}.{topic}" if alias else topic


async def compare_topics(
    local: Local, source: Client, target: Client, pairs: Sequence[tuple[str, str]]
) -> list[str]:
    """Compare each topic with its copy and show the results. Return the topics that differ."""
    rows: list[Row] = []
    different = []
    async with source as source_client, target as target_client:
        for topic, remote in pairs:
            comparison = await verify_topic(source_client, target_client, topic, remote)
            if local.form is Format.TABLE:
                _print(comparison)
            rows += _rows(comparison)
            if not comparison.equal:
                different.append(topic)
    if local.form is not Format.TABLE:
        local.show(rows, COLUMNS)
    return different


def _print(comparison: TopicComparison) -> None:
    verdict = "equal" if comparison.equal else "DIFFERENT"
    typer.echo(
        f"{comparison.source_topic} and {comparison.target_topic}: {verdict}, {comparison.records:,} records"
    )
    for partition in comparison.partitions:
        typer.echo(f"  {_partition_line(partition)}")


def _partition_line(result: PartitionComparison) -> str:
    if result.equal:
        return f"{result.partition:>4}  {result.source_digest}  {result.source_records:,} records"
    return (
        f"{result.partition:>4}  {result.source_digest} ({result.source_records:,} records) is not "
        f"{result.target_digest} ({result.target_records:,} records); {result.difference}"
    )


def _rows(comparison: TopicComparison) -> list[Row]:
    return [
        {
            "source_topic": comparison.source_topic,
            "target_topic": comparison.target_topic,
            "partition": each.partition,
            "equal": each.equal,
            "source_records": each.source_records,
            "target_records": each.target_records,
            "source_digest": each.source_digest,
            "target_digest": each.target_digest,
            "difference": None if each.difference is None else str(each.difference),
        }
        for each in comparison.partitions
    ]
