"""Moves of replicas into log directories (KIP-113): the `log_dirs` of a reassignment's JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kafka_client import TopicPartition
from kafka_client.errors import ErrorCode
from millstream.kafka_tools.java.java_errors import command_failed
from millstream.terminal.session import Session

LOOK_AGAIN_S = 0.1


class Replica(NamedTuple):
    """A partition's replica; they sort by broker, as Java's do."""

    broker: int
    tp: TopicPartition

    def __str__(self) -> str:
        return f"{self.tp}-{self.broker}"


FolderMoves: TypeAlias = Mapping[Replica, str]
"""The target log directory of each replica."""


class Status(NamedTuple):
    """The status of a move. `text` is printed, `has_ended` is True if nothing remains to be done.

    `moving_from` is the log directory that the replica is leaving, or None if it is not moving.
    """

    text: str
    has_ended: bool
    moving_from: str | None = None


async def statuses(session: Session, moves: FolderMoves) -> dict[Replica, Status]:
    """Return the status of each move, sorted by replica."""
    places = await _places(session, moves)
    return {replica: _status(replica, moves[replica], *places[replica]) for replica in sorted(moves)}


async def start(session: Session, moves: FolderMoves, timeout_ms: int) -> FolderMoves:
    """Start moves, and print a line for each. Retry those whose replica is not on its broker yet.

    Return the moves that could not be started in time. Raises JavaError if a broker refuses one.
    """
    waiting = dict(moves)
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        for replica in await _started(session, waiting):
            # The blank at the end is Java's.
            print(
                f"Successfully started moving log directory to {waiting.pop(replica)} for replica "
                f"{replica.tp} with broker {replica.broker} "
            )
        if not waiting or time.monotonic() >= deadline:
            return waiting
        await asyncio.sleep(LOOK_AGAIN_S)


async def _started(session: Session, moves: FolderMoves) -> list[Replica]:
    by_broker: dict[int, dict[TopicPartition, str]] = {}
    for (broker, tp), folder in moves.items():
        by_broker.setdefault(broker, {})[tp] = folder
    results = await session.admin.alter_replica_log_dirs(by_broker)
    started = []
    for replica in sorted(moves):
        error = results[replica.broker][replica.tp]
        if error is None:
            started.append(replica)
        elif error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
            refused = command_failed(f"Failed to alter dir for {replica}")
            refused.add_note(f"note: {moves[replica]}: {error}")
            raise refused from error
    return started


async def current_places(
    session: Session, assignment: Mapping[TopicPartition, Sequence[int]]
) -> dict[Replica, str]:
    """Return the log directory of each replica on a live broker."""
    alive = {broker.node_id for broker in (await session.admin.describe_cluster()).brokers}
    replicas = [Replica(node, tp) for tp, nodes in assignment.items() for node in nodes if node in alive]
    places = await _places(session, replicas)
    return {replica: current for replica, (current, _) in places.items() if current is not None}


async def _places(
    session: Session, replicas: Iterable[Replica]
) -> dict[Replica, tuple[str | None, str | None]]:
    """Return each replica's current log directory, and the one that it moves into, each or None."""
    requested = list(replicas)
    if not requested:
        return {}
    brokers = {replica.broker for replica in requested}
    by_broker = await session.admin.describe_log_dirs(brokers, {replica.tp for replica in requested})
    current: dict[Replica, str] = {}
    future: dict[Replica, str] = {}
    for broker, folders in by_broker.items():
        for folder in folders:
            for tp, info in folder.replicas.items():
                (future if info.is_future else current)[Replica(broker, tp)] = folder.path
    return {replica: (current.get(replica), future.get(replica)) for replica in requested}


def _status(replica: Replica, target: str, current: str | None, future: str | None) -> Status:
    subject = f"Partition {replica.tp} on broker {replica.broker}"
    if current is None:
        return Status(
            f"Partition {replica.tp} is not found in any live log dir on broker {replica.broker}. There is "
            "likely an offline log directory on the broker.",
            has_ended=False,
        )
    if future is not None:
        text = f"{subject} is being moved to log dir {future} instead of {target}."
        if future == target:
            text = f"Reassignment of replica {replica} is still in progress."
        return Status(text, has_ended=False, moving_from=current)
    if current == target:
        return Status(f"Reassignment of replica {replica} completed successfully.", has_ended=True)
    return Status(f"{subject} is not being moved from log dir {current} to {target}.", has_ended=True)
