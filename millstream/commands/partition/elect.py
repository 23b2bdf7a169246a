"""Electing leaders, and reporting the result of each partition."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_client import ElectionType
from kafka_client.errors import ErrorCode
from millstream.terminal.partitions import find_partitions
from millstream.terminal.session import Session, settle


async def elect_leaders(
    session: Session, election: str, partitions: Sequence[str] | None, columns: Sequence[str]
) -> None:
    """Elect leaders and show a row for each named partition; without names for each that needed an election.

    Raises an error if an election failed.
    """
    tps = await find_partitions(session, partitions) if partitions else None
    results = await session.admin.elect_leaders(ElectionType[election.upper()], tps)
    failed = {
        str(tp): error
        for tp, error in sorted(results.items())
        if error is not None and error.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    session.show(
        (
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "result": "elected" if error is None else "failed" if str(tp) in failed else "not needed",
                "error": error.code.name if error is not None and str(tp) in failed else None,
            }
            for tp, error in sorted(results.items())
        ),
        columns,
    )
    settle(session, failed, len(results))
