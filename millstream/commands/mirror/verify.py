"""Comparing topics, and showing how they compare."""

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
    """A topic and its copy, by TOPIC or SOURCE:TARGET."""
    topic, colon, remote = name.partition(":")
    return topic, remote if colon else f"{alias}.{topic}" if alias else topic


async def compare_topics(
    local: Local, source: Client, target: Client, pairs: Sequence[tuple[str, str]]
) -> list[str]:
    """Show how each topic compares with its copy; those that differ."""
    rows: list[Row] = []
    different = []
    async with source as source_client, target as target_client:
        for topic, remote in pairs:
            found = await verify_topic(source_client, target_client, topic, remote)
            if local.form is Format.TABLE:
                _print(found)
            rows += _rows(found)
            if not found.equal:
                different.append(topic)
    if local.form is not Format.TABLE:
        local.show(rows, COLUMNS)
    return different


def _print(found: TopicComparison) -> None:
    verdict = "equal" if found.equal else "DIFFERENT"
    typer.echo(f"{found.source_topic} and {found.target_topic}: {verdict}, {found.records:,} records")
    for partition in found.partitions:
        typer.echo(f"  {_partition_line(partition)}")


def _partition_line(found: PartitionComparison) -> str:
    if found.equal:
        return f"{found.partition:>4}  {found.source_digest}  {found.source_records:,} records"
    return (
        f"{found.partition:>4}  {found.source_digest} ({found.source_records:,} records) is not "
        f"{found.target_digest} ({found.target_records:,} records); {found.difference}"
    )


def _rows(found: TopicComparison) -> list[Row]:
    return [
        {
            "source_topic": found.source_topic,
            "target_topic": found.target_topic,
            "partition": each.partition,
            "equal": each.equal,
            "source_records": each.source_records,
            "target_records": each.target_records,
            "source_digest": each.source_digest,
            "target_digest": each.target_digest,
            "difference": None if each.difference is None else str(each.difference),
        }
        for each in found.partitions
    ]
