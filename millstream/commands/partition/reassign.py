"""Moving partitions: read the moves, begin them, and wait until they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from kafka_client import TopicPartition
from kafka_client.java_properties import read_text
from millstream.terminal.output import Row
from millstream.terminal.partitions import find_partitions, parse_partitions
from millstream.terminal.session import Session, settle
from millstream.terminal.status import UsageError
from millstream.terminal.throttles import clear_throttles, copies, set_throttles

LOOK_SECONDS = 1.0
"""The time between two checks of the moves under way."""

Moves = Mapping[TopicPartition, list[int] | None]
"""The target replicas of each partition, the preferred leader first; None cancels its move."""


class _Partition(msgspec.Struct):
    topic: str
    partition: int
    replicas: list[int] = []


class _File(msgspec.Struct):
    """The file of kafka-reassign-partitions.sh, without its log_dirs, which are for AlterReplicaLogDirs."""

    partitions: list[_Partition]


def read_moves(texts: Sequence[str], file: Path | None, *, cancel: bool) -> Moves:
    """Read the moves from the command line or a file. Raises UsageError if a move cannot be read."""
    moves = (
        _read_file(file) if file is not None else dict(map(_read_move if not cancel else _read_name, texts))
    )
    if not cancel and (empty := [str(tp) for tp, replicas in moves.items() if not replicas]):
        raise UsageError(f"{', '.join(empty)}: to which brokers?")
    return dict.fromkeys(moves) if cancel else moves


def _read_name(text: str) -> tuple[TopicPartition, list[int] | None]:
    topic, partitions = parse_partitions(text)
    if partitions is None or len(partitions) != 1:
        raise UsageError(f"{text}: give TOPIC:PARTITION")
    return TopicPartition(topic, partitions[0]), None


def _read_move(text: str) -> tuple[TopicPartition, list[int] | None]:
    name, _, brokers = text.partition("=")
    try:
        return _read_name(name)[0], [int(each) for each in brokers.split(",")]
    except ValueError:
        raise UsageError(f"{text}: give TOPIC:PARTITION=BROKER,BROKER") from None


def _read_file(path: Path) -> dict[TopicPartition, list[int] | None]:
    try:
        read = msgspec.json.decode(read_text(path, "--reassignment-json-file"), type=_File)
    except msgspec.MsgspecError as error:
        raise UsageError(f"--reassignment-json-file {path}: {error}") from None
    return {TopicPartition(each.topic, each.partition): each.replicas for each in read.partitions}


async def planned(session: Session, moves: Moves) -> list[Row]:
    """Return a row for each partition, with its current replicas.

    Raises NotFound if a partition does not exist.
    """
    tps = await find_partitions(session, [f"{tp.topic}:{tp.partition}" for tp in moves])
    cluster = await session.client.metadata({tp.topic for tp in tps})
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(cluster.topics[tp.topic].partitions[tp.partition].replicas),
            "new_replicas": moves[tp],
        }
        for tp in tps
    ]


async def begin(session: Session, moves: Moves) -> None:
    """Begin or cancel the moves. Report those that are refused, and raise at the end if there are any."""
    results = await session.admin.alter_partition_reassignments(moves)
    failed = {str(tp): error for tp, error in sorted(results.items()) if error is not None}
    settle(session, failed, len(results))


@asynccontextmanager
async def throttled(
    session: Session, moves: Moves, rows: Sequence[Row], rate: int | None, *, until_end: bool
) -> AsyncIterator[None]:
    """Throttle the moves that the body begins, and those under way, to `rate` bytes/s; None: no throttle.

    At the end the throttle is removed if the body waited for the moves and no others are under way.
    """
    if rate is None:
        yield
        return
    topics = sorted({tp.topic for tp in moves})
    current = {TopicPartition(row["topic"], row["partition"]): row["replicas"] for row in rows}
    proposed = {tp: replicas for tp, replicas in moves.items() if replicas is not None}
    copied = copies(await session.admin.list_partition_reassignments(), proposed, current)
    await set_throttles(session, copied, rate)
    is_over = False
    try:
        yield
        is_over = until_end and not await session.admin.list_partition_reassignments()
        if is_over:
            await unthrottle_all(session, topics)
    finally:
        if not is_over:
            session.tell(f"the throttle stays: millstream partition unthrottle {' '.join(topics)}")


async def unthrottle_all(session: Session, topics: Iterable[str]) -> None:
    """Remove the throttles of all brokers and of these topics."""
    brokers = (await session.admin.describe_cluster()).brokers
    await clear_throttles(session, [broker.node_id for broker in brokers], topics)


async def wait_for(session: Session, tps: Sequence[TopicPartition]) -> None:
    """Wait until no partition has a move under way."""
    with session.progress("moving", len(tps), unit="partitions") as progress:
        while left := await session.admin.list_partition_reassignments(tps):
            progress.advance(len(tps) - len(left) - progress.done)
            await asyncio.sleep(LOOK_SECONDS)
        progress.advance(len(tps) - progress.done)
