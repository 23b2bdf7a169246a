"""Moving partitions: reading what is to move, beginning it, waiting for its end."""

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
"""Between two looks at the moves under way."""

Moves = Mapping[TopicPartition, list[int] | None]
"""The replicas each partition is to have, the preferred leader first; None cancels."""


class _Partition(msgspec.Struct):
    topic: str
    partition: int
    replicas: list[int] = []


class _File(msgspec.Struct):
    """What kafka-reassign-partitions.sh reads; its log_dirs are AlterReplicaLogDirs' and not taken here."""

    partitions: list[_Partition]


def read_moves(texts: Sequence[str], file: Path | None, *, cancel: bool) -> Moves:
    """Moves of the command line or of a file; UsageError for what cannot be read."""
    found = (
        _read_file(file) if file is not None else dict(map(_read_move if not cancel else _read_name, texts))
    )
    if not cancel and (empty := [str(tp) for tp, replicas in found.items() if not replicas]):
        raise UsageError(f"{', '.join(empty)}: to which brokers?")
    return dict.fromkeys(found) if cancel else found


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
    """A row for each partition, with the replicas it has; NotFound for one that is not there."""
    tps = await find_partitions(session, [f"{tp.topic}:{tp.partition}" for tp in moves])
    known = await session.client.metadata({tp.topic for tp in tps})
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(known.topics[tp.topic].partitions[tp.partition].replicas),
            "new_replicas": moves[tp],
        }
        for tp in tps
    ]


async def begin(session: Session, moves: Moves) -> None:
    """Begin moves, or cancel them; what is refused is told, and raised in the end."""
    results = await session.admin.alter_partition_reassignments(moves)
    failed = {str(tp): error for tp, error in sorted(results.items()) if error is not None}
    settle(session, failed, len(results))


@asynccontextmanager
async def throttled(
    session: Session, moves: Moves, rows: Sequence[Row], rate: int | None, *, until_end: bool
) -> AsyncIterator[None]:
    """Have the moves begun within throttled, if there is a `rate` (bytes/s), and those under way with them.
    At the end the throttle is taken away if the moves were waited for and no others are under way.
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
    """Take away the throttles of all brokers, and of these topics."""
    brokers = (await session.admin.describe_cluster()).brokers
    await clear_throttles(session, [broker.node_id for broker in brokers], topics)


async def wait_for(session: Session, tps: Sequence[TopicPartition]) -> None:
    """Wait until none of the partitions is on its way any more."""
    with session.progress("moving", len(tps), unit="partitions") as progress:
        while left := await session.admin.list_partition_reassignments(tps):
            progress.advance(len(tps) - len(left) - progress.done)
            await asyncio.sleep(LOOK_SECONDS)
        progress.advance(len(tps) - progress.done)
