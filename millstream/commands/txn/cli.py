"""`millstream txn`: what kafka-transactions.sh does, with its options and columns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.terminal.command import command, noun_options
from millstream.terminal.completion import complete_topics
from millstream.terminal.output import Format
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError

if TYPE_CHECKING:
    from kafka_client import ActiveProducer, TopicPartition

app = typer.Typer(add_completion=False, no_args_is_help=True)

MINUTE_MS = 60_000
UNKNOWN = "None"
"""The text that Kafka's tool prints for an unknown number."""

LISTED = {
    "transactional_id": "TransactionalId",
    "coordinator": "Coordinator",
    "producer_id": "ProducerId",
    "state": "TransactionState",
}
DESCRIBED = {
    "coordinator": "CoordinatorId",
    "transactional_id": "TransactionalId",
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "state": "TransactionState",
    "timeout_ms": "TransactionTimeoutMs",
    "start_time_ms": "CurrentTransactionStartTimeMs",
    "duration_ms": "TransactionDurationMs",
    "partitions": "TopicPartitions",
}
PRODUCERS = {
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "coordinator_epoch": "LatestCoordinatorEpoch",
    "last_sequence": "LastSequence",
    "last_timestamp_ms": "LastTimestamp",
    "transaction_start_offset": "CurrentTransactionStartOffset",
}
HANGING = {
    "topic": "Topic",
    "partition": "Partition",
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "coordinator_epoch": "CoordinatorEpoch",
    "start_offset": "StartOffset",
    "last_timestamp_ms": "LastTimestamp",
    "duration_min": "Duration(min)",
}

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
    transactions = await session.admin.list_transactions(
        longer_than_ms=duration_filter, transactional_id_pattern=transactional_id_pattern
    )
    session.show(
        (
            {
                "transactional_id": one.transactional_id,
                "coordinator": one.coordinator,
                "producer_id": one.producer_id,
                "state": one.state,
            }
            for one in transactions
        ),
        LISTED,
    )


@command(app)
async def describe(
    session: Session,
    *,
    transactional_id: Annotated[str, typer.Option(help="The transactional id.")],
) -> None:
    """Describe a transactional id and its transaction."""
    transaction = (await session.admin.describe_transactions([transactional_id]))[transactional_id]
    began = transaction.start_time_ms
    names = [str(tp) for tp in transaction.partitions]
    row = {
        "coordinator": transaction.coordinator,
        "transactional_id": transaction.transactional_id,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "state": transaction.state,
        "timeout_ms": transaction.timeout_ms,
        "start_time_ms": _number_or_unknown(session, began),
        "duration_ms": _number_or_unknown(session, -1 if began < 0 else _now_ms() - began),
        "partitions": ",".join(names) if _is_text(session) else names,
    }
    session.show([row], DESCRIBED)


@command(app)
async def describe_producers(
    session: Session, *, topic: TopicName, partition: PartitionIndex, broker_id: BrokerId = None
) -> None:
    """Describe the producers a partition knows, and where their open transactions begin."""
    from kafka_client import TopicPartition

    tp = TopicPartition(topic, partition)
    producers = await session.admin.describe_producers([tp], node=broker_id)
    session.show(
        (
            {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "coordinator_epoch": producer.coordinator_epoch,
                "last_sequence": producer.last_sequence,
                "last_timestamp_ms": producer.last_timestamp_ms,
                "transaction_start_offset": _number_or_unknown(session, producer.transaction_start_offset),
            }
            for producer in producers[tp]
        ),
        PRODUCERS,
    )


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

    tp = TopicPartition(topic, partition)
    if start_offset is not None:
        producer = await _writer(session, tp, start_offset)
        named = (producer.producer_id, producer.producer_epoch, producer.coordinator_epoch)
    else:
        assert producer_id is not None
        assert producer_epoch is not None
        assert coordinator_epoch is not None
        named = (producer_id, producer_epoch, coordinator_epoch)
    session.confirm(
        f"Abort the transaction of producer {named[0]} (epoch {named[1]}) in {tp}? Readers of committed "
        "records never see what it wrote there.",
        yes=yes,
    )
    # A producer's first transaction has no coordinator epoch yet; 0 is not above any coordinator's epoch.
    await session.admin.abort_transaction(tp, *named[:2], max(named[2], 0))


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
    from millstream.commands.txn.hanging import find_hanging

    now_ms = _now_ms()
    hanging = await find_hanging(
        session.client,
        topic=topic,
        partition=partition,
        broker_id=broker_id,
        idle_ms=max_transaction_timeout * MINUTE_MS,
        now_ms=now_ms,
    )
    session.show(
        (
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "coordinator_epoch": producer.coordinator_epoch,
                "start_offset": producer.transaction_start_offset,
                "last_timestamp_ms": producer.last_timestamp_ms,
                "duration_min": (now_ms - producer.last_timestamp_ms) // MINUTE_MS,
            }
            for tp, producer in hanging
        ),
        HANGING,
    )


async def _writer(session: Session, tp: TopicPartition, start_offset: int) -> ActiveProducer:
    from kafka_client.errors import ErrorCode, KafkaError

    for producer in (await session.admin.describe_producers([tp]))[tp]:
        if producer.transaction_start_offset == start_offset:
            return producer
    raise KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"could not find any open transactions starting at offset {start_offset} on partition {tp}",
    )


def _is_text(session: Session) -> bool:
    return session.form in (Format.TABLE, Format.PLAIN)


def _number_or_unknown(session: Session, number: int) -> object:
    """Return the number. If it is negative, so unknown, return "None" for text and None for other forms."""
    return number if number >= 0 else UNKNOWN if _is_text(session) else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
