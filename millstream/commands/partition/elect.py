"""Electing leaders, and reporting the result of each partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kafka_client import Admin, ElectionType, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError
from millstream.terminal.output import Row
from millstream.terminal.partitions import find_partitions
from millstream.terminal.session import Session, settle


@dataclass(frozen=True, slots=True)
class Elections:
    """The results of elections, each sorted by partition."""

    elected: list[TopicPartition] = field(default_factory=list)
    not_needed: list[TopicPartition] = field(default_factory=list)
    """Partitions that were led by a valid replica already."""
    failed: dict[TopicPartition, KafkaError] = field(default_factory=dict)


async def elect(admin: Admin, election: ElectionType, tps: Sequence[TopicPartition] | None) -> Elections:
    """Elect leaders of these partitions, or of all that need an election if `tps` is None."""
    result = Elections()
    for tp, error in sorted((await admin.elect_leaders(election, tps)).items()):
        if error is None:
            result.elected.append(tp)
        elif error.code is ErrorCode.ELECTION_NOT_NEEDED:
            result.not_needed.append(tp)
        else:
            result.failed[tp] = error
    return result


async def elect_leaders(
    session: Session, election: str, partitions: Sequence[str] | None, columns: Sequence[str]
) -> None:
    """Elect leaders and show a row for each named partition; without names for each that needed an election.

    Raises an error if an election failed.
    """
    tps = await find_partitions(session, partitions) if partitions else None
    result = await elect(session.admin, ElectionType[election.upper()], tps)
    rows = [
        *(_row(tp, "elected") for tp in result.elected),
        *(_row(tp, "not needed") for tp in result.not_needed),
        *(_row(tp, "failed", error.code.name) for tp, error in result.failed.items()),
    ]
    session.show(sorted(rows, key=lambda row: (row["topic"], row["partition"])), columns)
    settle(session, {str(tp): error for tp, error in result.failed.items()}, len(rows))


def _row(tp: TopicPartition, result: str, error: str | None = None) -> Row:
    return {"topic": tp.topic, "partition": tp.partition, "result": result, "error": error}
