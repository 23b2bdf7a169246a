"""`kafka-transactions`: transactions and their producers, as TransactionsCommand has them.

`millstream.commands.txn` does the work. forceTerminateTransaction fences the id's producer.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import JavaError, java_error
from millstream.kafka_tools.options.arguments import Ended, Options
from millstream.kafka_tools.running import VERSION_SHOWN, Cluster, tool

if TYPE_CHECKING:
    from kafka_client import TopicPartition
    from millstream.commands.txn.hanging import Writer
    from millstream.kafka_tools.options.argparse4j import Parser
    from millstream.terminal.session import Session

OPTIONS = Options(
    "This tool is used to analyze the transactional state of producers in the cluster. It can be used to "
    "detect and recover from hanging transactions.",
    [],
)
NEEDS_PRODUCER = (
    "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
    "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
)
NEEDS_SCOPE = (
    "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
)

Work = Callable[["Session", Namespace], Awaitable[None]]


def main(arguments: Sequence[str]) -> int:
    """Carry out the command."""
    values = _parser().read(arguments)
    if values.version:
        print(VERSION_SHOWN)
        return 0
    _check(values)
    try:
        cluster = Cluster.create(values.bootstrap_server, values.command_config)
    except JavaError as error:
        if error.java_class.endswith("NoSuchFileException"):
            raise _ended("Failed to load admin client properties", error) from None
        raise
    cluster.run(lambda session: _WORK[values.command](session, values))
    return 0


def _parser() -> Parser:
    from millstream.kafka_tools.options.argparse4j import Parser, integer, long, short

    parser = Parser("kafka-transactions.sh", OPTIONS.purpose)
    parser.add_argument("-v", "--version", action="store_true", help="Tell the version, and end.")
    parser.add_argument("--command-config", metavar="FILE", help="Properties of the admin client.")
    parser.require("--bootstrap-server", metavar="host:port", help="Brokers to connect to.")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")

    add = commands.add_parser("list", help="List transactions.").add_argument
    add("--duration-filter", type=long, help="Only those that run longer, in ms; below 0: all.")
    add("--transactional-id-pattern", help="Only ids that this regular expression matches.")
    describe = commands.add_parser("describe", help="Describe the transaction of an id.")
    describe.require("--transactional-id", help="The id.")
    producers = commands.add_parser("describe-producers", help="Describe a partition's producers.")
    producers.add_argument("--broker-id", type=integer, help="Ask this broker instead of the leader.")
    producers.require("--topic", help="The topic.")
    producers.require("--partition", type=integer, help="The partition's number.")
    abort = commands.add_parser("abort", help="Abort a transaction that hangs.")
    abort.require("--topic", help="The topic.")
    abort.require("--partition", type=integer, help="The partition's number.")
    abort.add_argument("--start-offset", type=long, help="Where the transaction begins.")
    abort.add_argument("--producer-id", type=long, help="For brokers before 3.0.")
    abort.add_argument("--producer-epoch", type=short, help="With --producer-id.")
    abort.add_argument("--coordinator-epoch", type=integer, help="With --producer-id.")
    add = commands.add_parser("find-hanging", help="Find transactions that hang.").add_argument
    add("--broker-id", type=integer, help="Search what this broker holds.")
    add("--max-transaction-timeout", type=integer, default=15, help="In minutes: look at those idle longer.")
    add("--topic", help="Search this topic.")
    add("--partition", type=integer, help="Search this partition of the topic.")
    force = commands.add_parser("forceTerminateTransaction", help="Abort an id's transaction.")
    force.require("--transactionalId", help="The id.")
    return parser


def _check(values: Namespace) -> None:
    """End with Java's message if options are missing."""
    if values.command == "find-hanging":
        if values.topic is None and values.broker_id is None:
            raise Ended(1, NEEDS_SCOPE)
        if values.partition is not None and values.topic is None:
            raise Ended(1, "The --partition argument requires --topic to be provided")
    if values.command == "abort" and values.start_offset is None:
        if values.producer_id is None:
            raise Ended(1, NEEDS_PRODUCER)
        for name in ("producer_epoch", "coordinator_epoch"):
            if getattr(values, name) is None:
                raise Ended(1, f"Missing required argument --{name.replace('_', '-')}")


async def _list(session: Session, values: Namespace) -> None:
    from kafka_client.errors import MillstreamError
    from millstream.commands.txn.rows import LISTED, listed_rows

    longer_than_ms = -1 if values.duration_filter is None else values.duration_filter
    try:
        rows = await listed_rows(session.admin, longer_than_ms, values.transactional_id_pattern)
    except MillstreamError as error:
        raise _ended("Failed to list transactions", error) from None
    _print(LISTED, rows)


async def _describe(session: Session, values: Namespace) -> None:
    from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
    from millstream.commands.txn.rows import DESCRIBED, described_row

    name = values.transactional_id
    try:
        row = await described_row(session.admin, name, _now_ms())
    except MillstreamError as error:
        cause: Exception = error
        if isinstance(error, KafkaError) and error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            text = (
                f"DescribeTransactions request for transactionalId `{name}` failed because the ID could not "
                "be found"
            )
            cause = JavaError("org.apache.kafka.common.errors.TransactionalIdNotFoundException", text)
        raise _ended(f"Failed to describe transaction state of transactional-id `{name}`", cause) from None
    row["partitions"] = ",".join(row["partitions"])
    _print(DESCRIBED, [row])


async def _describe_producers(session: Session, values: Namespace) -> None:
    from kafka_client import TopicPartition
    from kafka_client.errors import MillstreamError
    from millstream.commands.txn.rows import PRODUCERS, producer_rows

    tp = TopicPartition(values.topic, values.partition)
    try:
        rows = await producer_rows(session.admin, tp, values.broker_id)
    except MillstreamError as error:
        place = "leader" if values.broker_id is None else f"broker {values.broker_id}"
        raise _ended(f"Failed to describe producers for partition {tp} on {place}", error) from None
    _print(PRODUCERS, rows)


async def _abort(session: Session, values: Namespace) -> None:
    from kafka_client import TopicPartition
    from kafka_client.errors import MillstreamError
    from millstream.commands.txn.hanging import Writer

    tp = TopicPartition(values.topic, values.partition)
    if values.start_offset is None:
        writer = Writer.create(values.producer_id, values.producer_epoch, values.coordinator_epoch)
    else:
        writer = await _writer(session, tp, values.start_offset)
    try:
        await session.admin.abort_transaction(tp, *writer)
    except MillstreamError as error:
        spec = (
            f"AbortTransactionSpec(topicPartition={tp}, producerId={writer.producer_id}, "
            f"producerEpoch={writer.producer_epoch}, coordinatorEpoch={writer.coordinator_epoch})"
        )
        raise _ended(f"Failed to abort transaction {spec}", error) from None


async def _writer(session: Session, tp: TopicPartition, start_offset: int) -> Writer:
    from kafka_client.errors import MillstreamError
    from millstream.commands.txn.hanging import find_writer

    try:
        writer = await find_writer(session.admin, tp, start_offset)
    except MillstreamError as error:
        raise _ended(f"Failed to validate producer state for partition {tp}", error) from None
    if writer is None:
        raise Ended(
            1, f"Could not find any open transactions starting at offset {start_offset} on partition {tp}"
        )
    return writer


async def _find_hanging(session: Session, values: Namespace) -> None:
    from kafka_client.errors import MillstreamError
    from millstream.commands.txn.rows import HANGING, hanging_rows

    try:
        rows = await hanging_rows(
            session.client,
            topic=values.topic,
            partition=values.partition,
            broker_id=values.broker_id,
            idle_minutes=values.max_transaction_timeout,
            now_ms=_now_ms(),
        )
    except MillstreamError as error:
        raise _ended("Failed to find hanging transactions", error) from None
    _print(HANGING, rows)


def _print(titles: Mapping[str, str], rows: Iterable[Mapping[str, object]]) -> None:
    from millstream.kafka_tools.pretty_table import print_table

    # An unknown number, None, is the text None here, as in Java's tables.
    print_table(tuple(titles.values()), [[row[key] for key in titles] for row in rows])


async def _force_terminate(session: Session, values: Namespace) -> None:
    """Abort the open transaction of an id by starting a producer with the id (KIP-939)."""
    from kafka_client import TransactionalProducer
    from kafka_client.errors import MillstreamError

    name = values.transactionalId
    try:
        async with TransactionalProducer(session.client, name):
            pass
    except MillstreamError as error:
        raise _ended(f"Failed to force terminate transactionalId `{name}`", error) from None


def _ended(message: str, error: Exception) -> Ended:
    cause = java_error(error, "listTopics")
    return Ended(1, f"{message}: {cause}. Enable debug logging for additional detail.")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_WORK: dict[str, Work] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _force_terminate,
}

app = tool(OPTIONS, main)
