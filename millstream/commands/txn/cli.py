"""`millstream txn`: what kafka-transactions.sh does, with its options and columns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.terminal.command import command, noun_options
from millstream.terminal.completion import complete_topics
from millstream.terminal.output import Format, Row
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError

if TYPE_CHECKING:
    from kafka_client import TopicPartition
    from millstream.commands.txn.hanging import Writer

app = typer.Typer(add_completion=False, no_args_is_help=True)

UNKNOWN = "None"
"""The text that Kafka's tool prints for an unknown number."""

TopicName = Annotated[str, typer.Option("--topic", help="The topic.", autocompletion=complete_topics)]
PartitionIndex = Annotated[int, typer.Option("--partition", min=0, help="The partition's number.")]
BrokerId = Annotated[int | None, typer.Option("--broker-id", help="Ask this broker instead of the leader.")]


noun_options(app, "Transactions: list and describe them, find those that hang, and abort these.")


@command(app, "list")
async def list_transactions(
    session: Session,
    *,
    duration_filter: Annotated[
        int, typer.Option(help="Only transactions that have been running longer, in ms; -1 for all.")
    ] = -1,
    transactional_id_pattern: Annotated[
        str | None, typer.Option(help="Only transactional ids that this regular expression matches.")
    ] = None,
) -> None:
    """List transactional ids with the state of their transactions."""
    from millstream.commands.txn.rows import LISTED, listed_rows

    session.show(await listed_rows(session.admin, duration_filter, transactional_id_pattern), LISTED)


@command(app)
async def describe(
    session: Session,
    *,
    transactional_id: Annotated[str, typer.Option(help="The transactional id.")],
) -> None:
    """Describe a transactional id and its transaction."""
    from millstream.commands.txn.rows import DESCRIBED, described_row

    row = await described_row(session.admin, transactional_id, _now_ms())
    if _is_text(session):
        row["partitions"] = ",".join(row["partitions"])
    session.show([_shown(session, row)], DESCRIBED)


@command(app)
async def describe_producers(
    session: Session, *, topic: TopicName, partition: PartitionIndex, broker_id: BrokerId = None
) -> None:
    """Describe the producers a partition knows, and where their open transactions begin."""
    from kafka_client import TopicPartition
    from millstream.commands.txn.rows import PRODUCERS, producer_rows

    rows = await producer_rows(session.admin, TopicPartition(topic, partition), broker_id)
    session.show((_shown(session, row) for row in rows), PRODUCERS)


def _check_abort(
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    **_: object,
) -> None:
    named = (producer_id, producer_epoch, coordinator_epoch)
    if start_offset is None and None in named:
        raise UsageError(
            "either --start-offset is needed, or --producer-id, --producer-epoch and --coordinator-epoch"
        )
    if start_offset is not None and named != (None, None, None):
        raise UsageError("--start-offset says it all; leave the producer out")


@command(app, check=_check_abort)
async def abort(
    session: Session,
    *,
    topic: TopicName,
    partition: PartitionIndex,
    start_offset: Annotated[
        int | None, typer.Option(min=0, help="Where the transaction begins (see find-hanging).")
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option(help="For brokers before 3.0, instead of the start offset.")
    ] = None,
    producer_epoch: Annotated[int | None, typer.Option(help="With --producer-id.")] = None,
    coordinator_epoch: Annotated[int | None, typer.Option(help="With --producer-id.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Abort a transaction that hangs in a partition, past its coordinator.

    Do not abort one that its coordinator has under way: it would be aborted in this partition only.
    find-hanging lists those that no coordinator knows.
    """
    from kafka_client import TopicPartition
    from millstream.commands.txn.hanging import Writer

    tp = TopicPartition(topic, partition)
    if start_offset is not None:
        writer = await _writer(session, tp, start_offset)
    else:
        assert producer_id is not None
        assert producer_epoch is not None
        assert coordinator_epoch is not None
        writer = Writer.create(producer_id, producer_epoch, coordinator_epoch)
    session.confirm(
        f"Abort the transaction of producer {writer.producer_id} (epoch {writer.producer_epoch}) in {tp}? "
        "Readers of committed records never see what it wrote there.",
        yes=yes,
    )
    await session.admin.abort_transaction(tp, *writer)


def _check_search(broker_id: int | None, topic: str | None, partition: int | None, **_: object) -> None:
    if topic is None and broker_id is None:
        raise UsageError("either --topic or --broker-id is needed, to limit the search")
    if partition is not None and topic is None:
        raise UsageError("--partition needs --topic")


@command(app, "find-hanging", check=_check_search)
async def find_hanging_transactions(
    session: Session,
    *,
    broker_id: Annotated[int | None, typer.Option(help="Search what this broker holds.")] = None,
    topic: Annotated[
        str | None, typer.Option(help="Search this topic.", autocompletion=complete_topics)
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Search this partition of the topic.")] = None,
    max_transaction_timeout: Annotated[
        int, typer.Option(min=0, help="Transactions idle for longer are looked at, in minutes.")
    ] = 15,
) -> None:
    """Find transactions that are open in a partition and that no coordinator will ever end."""
    from millstream.commands.txn.rows import HANGING, hanging_rows

    rows = await hanging_rows(
        session.client,
        topic=topic,
        partition=partition,
        broker_id=broker_id,
        idle_minutes=max_transaction_timeout,
        now_ms=_now_ms(),
    )
    session.show(rows, HANGING)


async def _writer(session: Session, tp: TopicPartition, start_offset: int) -> Writer:
    from kafka_client.errors import ErrorCode, KafkaError
    from millstream.commands.txn.hanging import find_writer

    writer = await find_writer(session.admin, tp, start_offset)
    if writer is None:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"could not find any open transactions starting at offset {start_offset} on partition {tp}",
        )
    return writer


def _is_text(session: Session) -> bool:
    return session.form in (Format.TABLE, Format.PLAIN)


def _shown(session: Session, row: Row) -> Row:
    """Return the row with "None", as Kafka's tool prints, for unknown numbers if the output is text."""
    if not _is_text(session):
        return row
    return {key: UNKNOWN if value is None else value for key, value in row.items()}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
