"""`millstream txn`: what kafka-transactions.sh does, with its options and columns.

Exit status: 0 done, 1 the cluster says no or does not answer, 2 the command line is wrong.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from logd.client import ActiveProducer, Admin, Client, TopicPartition
from logd.client.properties import read_command_config
from logd.errors import ConfigError, ErrorCode, KafkaError, MillstreamError
from millstream.txn.hanging import find_hanging
from millstream.txn.table import print_table

app = typer.Typer(add_completion=False, no_args_is_help=True)

MINUTE_MS = 60_000
CONNECT_TIMEOUT_MS = 5_000
"""Short, because a person waits for the answer."""
UNKNOWN = "None"
"""What Kafka's tool prints for a number that is not known."""

LISTED = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBED = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
PRODUCERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
HANGING = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)

T = TypeVar("T")

Servers = Annotated[
    str | None, typer.Option("--bootstrap-server", metavar="HOST:PORT[,HOST:PORT]", help="Brokers to ask.")
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Properties of the client: security.protocol, ssl.*, sasl.* ...",
    ),
]
TopicName = Annotated[str, typer.Option("--topic", help="The topic.")]
PartitionIndex = Annotated[int, typer.Option("--partition", min=0, help="The partition's number.")]
BrokerId = Annotated[int | None, typer.Option("--broker-id", help="Ask this broker instead of the leader.")]


@app.callback()
def _options(
    context: typer.Context, bootstrap_server: Servers = None, command_config: CommandConfig = None
) -> None:
    """Transactions: list and describe them, find those that hang, and abort these."""
    # Kafka's tool takes the servers before the command, our other commands take them behind it: here both do.
    context.obj = bootstrap_server, command_config


@app.command("list")
def list_transactions(
    context: typer.Context,
    duration_filter: Annotated[
        int, typer.Option(help="Only transactions that have been running longer, in ms; -1 for all.")
    ] = -1,
    transactional_id_pattern: Annotated[
        str | None, typer.Option(help="Only transactional ids that this regular expression matches.")
    ] = None,
    bootstrap_server: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """List transactional ids with the state of their transactions."""

    async def ask(client: Client) -> list[tuple[object, ...]]:
        found = await Admin(client).list_transactions(
            longer_than_ms=duration_filter, transactional_id_pattern=transactional_id_pattern
        )
        return [(one.transactional_id, one.coordinator, one.producer_id, one.state) for one in found]

    print_table(LISTED, _run(context, bootstrap_server, command_config, ask))


@app.command()
def describe(
    context: typer.Context,
    transactional_id: Annotated[str, typer.Option(help="The transactional id.")],
    bootstrap_server: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Describe a transactional id and its transaction."""

    async def ask(client: Client) -> list[tuple[object, ...]]:
        found = (await Admin(client).describe_transactions([transactional_id]))[transactional_id]
        began = found.start_time_ms
        return [
            (
                found.coordinator,
                found.transactional_id,
                found.producer_id,
                found.producer_epoch,
                found.state,
                found.timeout_ms,
                UNKNOWN if began < 0 else began,
                UNKNOWN if began < 0 else _now_ms() - began,
                ",".join(map(str, found.partitions)),
            )
        ]

    print_table(DESCRIBED, _run(context, bootstrap_server, command_config, ask))


@app.command()
def describe_producers(
    context: typer.Context,
    topic: TopicName,
    partition: PartitionIndex,
    broker_id: BrokerId = None,
    bootstrap_server: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Describe the producers a partition knows, and where their open transactions begin."""
    tp = TopicPartition(topic, partition)

    async def ask(client: Client) -> list[tuple[object, ...]]:
        found = await Admin(client).describe_producers([tp], node=broker_id)
        return [
            (
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.last_sequence,
                producer.last_timestamp_ms,
                _known(producer.transaction_start_offset),
            )
            for producer in found[tp]
        ]

    print_table(PRODUCERS, _run(context, bootstrap_server, command_config, ask))


@app.command()
def abort(
    context: typer.Context,
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
    bootstrap_server: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Abort a transaction that hangs in a partition, past its coordinator.

    Do not abort one that its coordinator has under way: it would be aborted in this partition only.
    find-hanging lists those that no coordinator knows.
    """
    tp = TopicPartition(topic, partition)
    named = (producer_id, producer_epoch, coordinator_epoch)
    if start_offset is None and None in named:
        raise typer.BadParameter(
            "either --start-offset is needed, or --producer-id, --producer-epoch and --coordinator-epoch"
        )
    if start_offset is not None and named != (None, None, None):
        raise typer.BadParameter("--start-offset says it all; leave the producer out")

    async def work(client: Client) -> None:
        admin = Admin(client)
        if start_offset is not None:
            found = await _writer(admin, tp, start_offset)
            await _abort(admin, tp, found.producer_id, found.producer_epoch, found.coordinator_epoch)
        else:
            assert producer_id is not None
            assert producer_epoch is not None
            assert coordinator_epoch is not None
            await _abort(admin, tp, producer_id, producer_epoch, coordinator_epoch)

    _run(context, bootstrap_server, command_config, work)


@app.command("find-hanging")
def find_hanging_transactions(
    context: typer.Context,
    broker_id: Annotated[int | None, typer.Option(help="Search what this broker holds.")] = None,
    topic: Annotated[str | None, typer.Option(help="Search this topic.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Search this partition of the topic.")] = None,
    max_transaction_timeout: Annotated[
        int, typer.Option(min=0, help="Transactions idle for longer are looked at, in minutes.")
    ] = 15,
    bootstrap_server: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Find transactions that are open in a partition and that no coordinator will ever end."""
    if topic is None and broker_id is None:
        raise typer.BadParameter("either --topic or --broker-id is needed, to limit the search")
    if partition is not None and topic is None:
        raise typer.BadParameter("--partition needs --topic")

    async def ask(client: Client) -> list[tuple[object, ...]]:
        now_ms = _now_ms()
        found = await find_hanging(
            client,
            topic=topic,
            partition=partition,
            broker_id=broker_id,
            idle_ms=max_transaction_timeout * MINUTE_MS,
            now_ms=now_ms,
        )
        return [
            (
                tp.topic,
                tp.partition,
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.transaction_start_offset,
                producer.last_timestamp_ms,
                (now_ms - producer.last_timestamp_ms) // MINUTE_MS,
            )
            for tp, producer in found
        ]

    print_table(HANGING, _run(context, bootstrap_server, command_config, ask))


async def _writer(admin: Admin, tp: TopicPartition, start_offset: int) -> ActiveProducer:
    for producer in (await admin.describe_producers([tp]))[tp]:
        if producer.transaction_start_offset == start_offset:
            return producer
    raise KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"could not find any open transactions starting at offset {start_offset} on partition {tp}",
    )


async def _abort(
    admin: Admin, tp: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    # A producer's first transaction has no coordinator epoch yet; 0 is not above any coordinator's epoch.
    await admin.abort_transaction(tp, producer_id, producer_epoch, max(coordinator_epoch, 0))


def _run(
    context: typer.Context, given: str | None, config: Path | None, work: Callable[[Client], Awaitable[T]]
) -> T:
    servers = given or context.obj[0]
    if not servers:
        raise typer.BadParameter("--bootstrap-server is needed")

    async def main() -> T:
        arguments = read_command_config(config or context.obj[1])
        async with Client(servers, connect_timeout_ms=CONNECT_TIMEOUT_MS, **arguments) as client:
            return await work(client)

    try:
        return asyncio.run(main())
    except MillstreamError as error:
        typer.echo(f"txn: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from None


def _known(number: int) -> object:
    return UNKNOWN if number < 0 else number


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
