"""`kafka-producer-perf-test`: how fast records are written, in ProducerPerformance's words.

What is measured, and how, is `millstream.bench`'s.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.kafka_tools.arguments import Options
from millstream.kafka_tools.java_errors import illegal_argument
from millstream.kafka_tools.running import Cluster, read_client_properties, tool

if TYPE_CHECKING:
    from logd.client import TransactionalProducer
    from millstream.bench.producing import ProduceBench
    from millstream.kafka_tools.argparse4j import Parser
    from millstream.terminal.session import Session

OPTIONS = Options("This tool is used to verify the producer performance.", [])
REPORTING_SECONDS = 5.0
TRANSACTION_MS = 3_000
MB = 1024 * 1024


def main(arguments: Sequence[str]) -> int:
    """Write, and say how fast that was."""
    parser = _parser()
    if not arguments:
        parser.print_help()
        return 0
    given = parser.read(arguments)
    _check(parser, given)
    payloads = _payloads(given)
    properties = _properties(given)
    cluster = Cluster.create(properties.get("bootstrap.servers", ""), None, properties)

    async def work(session: Session) -> None:
        await _measure(session, given, payloads, properties)

    cluster.run(work, "initProducerId", allow_auto_topic_creation=True)
    return 0


def _parser() -> Parser:
    from millstream.kafka_tools.argparse4j import Parser, double, integer, long

    parser = Parser("producer-performance", OPTIONS.purpose)
    parser.require("--topic", metavar="TOPIC", help="The topic to write to.")
    parser.require("--num-records", metavar="NUM-RECORDS", type=long, help="How many records.")
    parser.require_one(
        (("--record-size",), {"metavar": "RECORD-SIZE", "type": integer, "help": "Bytes of a record."}),
        (("--payload-file",), {"metavar": "PAYLOAD-FILE", "help": "Records to write, by turns."}),
        (("--payload-monotonic",), {"action": "store_true", "help": "Write numbers, from 0 on."}),
    )
    parser.add_argument(
        "--payload-delimiter", metavar="PAYLOAD-DELIMITER", default="\\n", help="Ends a record in that file."
    )
    parser.require("--throughput", metavar="THROUGHPUT", type=double, help="Records a second; -1: no limit.")
    parser.add_argument(
        "--producer-props", metavar="PROP-NAME=PROP-VALUE", nargs="+", help="Properties of the producer."
    )
    parser.add_argument("--producer.config", metavar="CONFIG-FILE", help="A file of them.")
    parser.add_argument("--print-metrics", action="store_true", help="Print the producer's metrics.")
    parser.add_argument("--transactional-id", metavar="TRANSACTIONAL-ID", help="Write in transactions.")
    parser.add_argument(
        "--transaction-duration-ms",
        metavar="TRANSACTION-DURATION",
        type=long,
        help=f"How long a transaction takes; {TRANSACTION_MS} unless told.",
    )
    return parser


def _check(parser: Parser, given: Namespace) -> None:
    if given.num_records <= 0:
        parser.error("--num-records should be greater than zero")
    if given.record_size is not None and given.record_size <= 0:
        parser.error("--record-size should be greater than zero")
    if given.producer_props is None and getattr(given, "producer.config") is None:
        parser.error("Either --producer-props or --producer.config must be specified.")
    if given.transaction_duration_ms is not None and given.transaction_duration_ms <= 0:
        parser.error("--transaction-duration-ms should be greater than zero")


def _payloads(given: Namespace) -> Iterator[bytes]:
    from itertools import count, cycle

    from millstream.bench.payload import random_payloads

    if given.payload_file is not None:
        return cycle(_file_payloads(given.payload_file, given.payload_delimiter))
    if given.payload_monotonic:
        return (b"%d" % number for number in count())
    return cycle(random_payloads(given.record_size))


def _file_payloads(file: str, delimiter: str) -> list[bytes]:
    from millstream.bench.payload import file_payloads

    path = Path(file)
    print(f"Reading payloads from: {path.absolute()}")
    if not path.exists() or path.stat().st_size == 0:
        raise illegal_argument("File does not exist or empty file provided.")
    found = file_payloads(path, b"\n" if delimiter == "\\n" else delimiter.encode())
    print(f"Number of messages read: {len(found)}")
    return found


def _properties(given: Namespace) -> dict[str, str]:
    properties = read_client_properties(getattr(given, "producer.config"))
    for text in given.producer_props or ():
        pieces = text.split("=")
        if len(pieces) != 2 or not pieces[1]:
            raise illegal_argument(f"Invalid property: {text}")
        properties[pieces[0]] = pieces[1]
    properties.setdefault("client.id", "perf-producer-client")
    if given.transactional_id is not None:
        properties["transactional.id"] = given.transactional_id
    elif given.transaction_duration_ms is not None and "transactional.id" not in properties:
        from uuid import uuid4

        properties["transactional.id"] = f"performance-producer-{uuid4()}"
    return properties


async def _measure(
    session: Session, given: Namespace, payloads: Iterator[bytes], properties: dict[str, str]
) -> None:
    from logd.client import BatchProducer, TransactionalProducer
    from logd.client.properties import ClientProperties
    from millstream.bench.producing import ProduceBench
    from millstream.kafka_tools.metrics_table import print_metrics

    made = ClientProperties.layered(properties, "")
    count = (await session.client.topic(given.topic)).partition_count
    if "transactional.id" in properties:
        settings = made.transactional_producer()
        name = settings.pop("transactional_id")
        async with TransactionalProducer(session.client, name, **settings) as transactional:
            bench = ProduceBench(_Committing(transactional), given.topic, count)
            await _run(bench, given, payloads, transactional.begin)
    else:
        async with BatchProducer(session.client, **made.producer()) as producer:
            bench = ProduceBench(producer, given.topic, count)
            await _run(bench, given, payloads, None)
    print(_total(bench))
    if given.print_metrics:
        print_metrics(session.client.metrics)


class _Committing:
    """A transactional producer, of which each run of the bench is a transaction."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self.send = producer.send
        self.partition_for = producer.partition_for
        self.flush = producer.commit


async def _run(
    bench: ProduceBench, given: Namespace, payloads: Iterator[bytes], begin: Callable[[], None] | None
) -> None:
    """Write all records; with `begin` in transactions that take --transaction-duration-ms."""
    from millstream.bench.producing import slice_size
    from millstream.terminal.progress import Progress

    first = list(islice(payloads, 1))
    slices = _slices(chain(first, payloads), given.num_records, slice_size(first, given.throughput))
    progress = Progress(_Reported(bench).look)
    duration = (given.transaction_duration_ms or TRANSACTION_MS) / 1000
    if begin is None:
        return await bench.run(slices, given.throughput, progress)
    for each in slices:
        begin()
        await bench.run(
            _until(chain([each], slices), time.monotonic() + duration), given.throughput, progress
        )


def _slices(payloads: Iterator[bytes], total: int, size: int) -> Iterator[list[bytes]]:
    """`total` payloads, `size` at a time."""
    for begin in range(0, total, size):
        yield list(islice(payloads, min(size, total - begin)))


def _until(slices: Iterator[list[bytes]], deadline: float) -> Iterator[list[bytes]]:
    """Slices up to the one in which the time is over."""
    for each in slices:
        yield each
        if time.monotonic() >= deadline:
            return


class _Reported:
    """A line about each five seconds."""

    def __init__(self, bench: ProduceBench) -> None:
        self._bench = bench
        self._at = time.perf_counter()
        self._window = bench.window()

    def look(self, done: float) -> None:
        """Print a line when it is time; `done`: records so far."""
        seconds = time.perf_counter() - self._at
        if seconds < REPORTING_SECONDS:
            return
        window, self._window = self._window, self._bench.window()
        self._at += seconds
        print(
            f"{window.count} records sent, {window.count / seconds:.1f} records/sec "
            f"({window.bytes_sent / seconds / MB:.2f} MB/sec), {window.average_ms:.1f} ms avg latency, "
            f"{window.max_ms:.1f} ms max latency."
        )


def _total(bench: ProduceBench) -> str:
    found, seconds = bench.latencies, max(bench.seconds, 0.001)
    middle, p95, p99, p999 = found.percentiles_ms(0.5, 0.95, 0.99, 0.999)
    return (
        f"{found.count} records sent, {found.count / seconds:.1f} records/sec "
        f"({bench.bytes_sent / seconds / MB:.2f} MB/sec), {found.average_ms:.2f} ms avg latency, "
        f"{found.max_ms:.2f} ms max latency, {middle} ms 50th, {p95} ms 95th, {p99} ms 99th, "
        f"{p999} ms 99.9th."
    )


app = tool(OPTIONS, main)
