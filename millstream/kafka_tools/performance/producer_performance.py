"""`kafka-producer-perf-test`: how fast records are written, in ProducerPerformance's words.

`millstream.commands.bench` measures, this module prints.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import illegal_argument
from millstream.kafka_tools.options.arguments import Options
from millstream.kafka_tools.running import Cluster, read_client_properties, tool

if TYPE_CHECKING:
    from kafka_client import TransactionalProducer
    from millstream.commands.bench.latencies import Latencies
    from millstream.commands.bench.producing import ProduceBench
    from millstream.kafka_tools.options.argparse4j import Parser
    from millstream.terminal.session import Session

OPTIONS = Options("This tool is used to verify the producer performance.", [])
REPORTING_MS = 5_000
TRANSACTION_MS = 3_000
DISTRIBUTIONS = ("none", "range", "random")
MB = 1024 * 1024


def main(arguments: Sequence[str]) -> int:
    """Write records, and print the rates."""
    parser = _parser()
    if not arguments:
        parser.print_help()
        return 0
    values = parser.read(arguments)
    _check(parser, values)
    payloads = _payloads(values)
    properties = _properties(values)
    cluster = Cluster.create(properties.get("bootstrap.servers", ""), None, properties)

    async def work(session: Session) -> None:
        await _measure(session, values, payloads, properties)

    cluster.run(work, "initProducerId", allow_auto_topic_creation=True)
    return 0


def _parser() -> Parser:
    from millstream.kafka_tools.options.argparse4j import Parser, double, integer, long

    parser = Parser("kafka-producer-perf-test", OPTIONS.purpose)
    parser.add_argument("--bootstrap-server", metavar="BOOTSTRAP-SERVER", help="The servers to connect to.")
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
        "--producer-props", metavar="PROP-NAME=PROP-VALUE", nargs="+", help="Deprecated: --command-property."
    )
    parser.add_argument(
        "--command-property", metavar="PROP-NAME=PROP-VALUE", nargs="+", help="Properties of the producer."
    )
    parser.add_argument("--producer.config", metavar="CONFIG-FILE", help="Deprecated: --command-config.")
    parser.add_argument("--command-config", metavar="CONFIG-FILE", help="A file of properties.")
    parser.add_argument("--print-metrics", action="store_true", help="Print the producer's metrics.")
    parser.add_argument("--transactional-id", metavar="TRANSACTIONAL-ID", help="Write in transactions.")
    parser.add_argument(
        "--transaction-duration-ms",
        metavar="TRANSACTION-DURATION",
        type=long,
        help=f"How long a transaction takes; {TRANSACTION_MS} unless told.",
    )
    _add_measuring(parser)
    return parser


def _add_measuring(parser: Parser) -> None:
    from millstream.kafka_tools.options.argparse4j import integer, long

    for name, kind, default, text in (
        ("warmup-records", long, 0, "Records that are left out of a second summary."),
        ("reporting-interval", long, REPORTING_MS, "ms between two lines."),
        ("record-key-range", integer, None, "Keys are numbers below this one."),
        ("random-seed", long, 0, "What random keys and records come of."),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default, help=text)
    parser.add_argument(
        "--key-distribution",
        type=_distribution,
        default="none",
        help="Keys: none, one after the other, or random ones.",
    )


def _distribution(text: str) -> str:
    if text not in DISTRIBUTIONS:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"invalid choice: '{text}' (choose from {{{','.join(DISTRIBUTIONS)}}})")
    return text


def _check(parser: Parser, values: Namespace) -> None:
    if values.num_records <= 0:
        parser.error("--num-records should be greater than zero.")
    if values.warmup_records >= values.num_records:
        parser.error(
            "The value for --warmup-records must be strictly fewer than the number of records in the test, "
            "--num-records."
        )
    if values.record_size is not None and values.record_size <= 0:
        parser.error("--record-size should be greater than zero.")
    _check_properties(parser, values)
    if values.transaction_duration_ms is not None and values.transaction_duration_ms <= 0:
        parser.error("--transaction-duration-ms should be greater than zero.")
    if values.reporting_interval <= 0:
        parser.error("--reporting-interval should be greater than zero.")
    if values.record_key_range is not None and values.record_key_range <= 0:
        parser.error("--record-key-range should be greater than zero.")
    if values.key_distribution != "none" and values.record_key_range is None:
        parser.error("--record-key-range is required when --key-distribution is 'range' or 'random'.")
    if values.key_distribution == "none" and values.record_key_range is not None:
        parser.error("--key-distribution must be 'range' or 'random' when --record-key-range is specified.")


def _check_properties(parser: Parser, values: Namespace) -> None:
    """End with Java's message without properties, or if an option and its former name are present."""
    former = getattr(values, "producer.config")
    places = (values.bootstrap_server, values.command_property, values.producer_props, former)
    if all(place is None for place in (*places, values.command_config)):
        parser.error(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified."
        )
    if values.command_property is not None and values.producer_props is not None:
        parser.error("--command-property and --producer-props cannot be specified together.")
    if values.command_config is not None and former is not None:
        parser.error("--command-config and --producer.config cannot be specified together.")


def _payloads(values: Namespace) -> Iterator[bytes]:
    from itertools import count, cycle

    from millstream.commands.bench.payload import random_payloads

    if values.payload_file is not None:
        return cycle(_file_payloads(values.payload_file, values.payload_delimiter))
    if values.payload_monotonic:
        return (b"%d" % number for number in count())
    return cycle(random_payloads(values.record_size, values.random_seed))


def _file_payloads(file: str, delimiter: str) -> list[bytes]:
    from millstream.commands.bench.payload import file_payloads

    path = Path(file)
    print(f"Reading payloads from: {path.absolute()}")
    if not path.exists() or path.stat().st_size == 0:
        raise illegal_argument("File does not exist or empty file provided.")
    payloads = file_payloads(path, b"\n" if delimiter == "\\n" else delimiter.encode())
    print(f"Number of records read: {len(payloads)}")
    return payloads


def _properties(values: Namespace) -> dict[str, str]:
    former = getattr(values, "producer.config")
    for option, today, value in (
        ("producer-props", "command-property", values.producer_props),
        ("producer.config", "command-config", former),
    ):
        if value is not None:
            print(
                f"Option --{option} has been deprecated and will be removed in a future version. "
                f"Use --{today} instead."
            )
    properties = read_client_properties(values.command_config or former)
    for text in values.command_property or values.producer_props or ():
        pieces = text.split("=")
        if len(pieces) != 2 or not pieces[1]:
            raise illegal_argument(f"Invalid property: {text}")
        properties[pieces[0]] = pieces[1]
    if values.bootstrap_server is not None:
        properties["bootstrap.servers"] = values.bootstrap_server
    properties.setdefault("client.id", "perf-producer-client")
    if values.transactional_id is not None:
        properties["transactional.id"] = values.transactional_id
    elif values.transaction_duration_ms is not None and "transactional.id" not in properties:
        from uuid import uuid4

        properties["transactional.id"] = f"performance-producer-{uuid4()}"
    return properties


async def _measure(
    session: Session, values: Namespace, payloads: Iterator[bytes], properties: dict[str, str]
) -> None:
    from kafka_client import BatchProducer, TransactionalProducer
    from kafka_client.properties import ClientProperties
    from millstream.commands.bench.producing import ProduceBench
    from millstream.kafka_tools.performance.metrics_table import print_metrics

    if values.warmup_records > 0:
        print(
            f"Warmup first {values.warmup_records} records. Steady state results will print after the "
            "complete test summary."
        )
    made = ClientProperties.layered(properties, "")
    keys = _keys(values)
    count = (await session.client.topic(values.topic)).partition_count
    if "transactional.id" in properties:
        settings = made.transactional_producer()
        name = settings.pop("transactional_id")
        async with TransactionalProducer(session.client, name, **settings) as transactional:
            bench = ProduceBench(_Committing(transactional), values.topic, count, keys)
            await _run(bench, values, payloads, transactional.begin)
    else:
        async with BatchProducer(session.client, **made.producer()) as producer:
            bench = ProduceBench(producer, values.topic, count, keys)
            await _run(bench, values, payloads, None)
    print(_total(bench.latencies, bench.bytes_sent, bench.seconds))
    if bench.steady is not None:
        print(_total(bench.steady, bench.steady.bytes_sent, bench.steady_seconds, " steady state"))
    if values.print_metrics:
        print_metrics(session.client.metrics)


def _keys(values: Namespace) -> Iterator[bytes] | None:
    """Return the keys of the records, or None if the records have none."""
    from itertools import count
    from random import Random

    limit = values.record_key_range
    if values.key_distribution == "range":
        return (b"%d" % (number % limit) for number in count())
    if values.key_distribution == "random":
        source = Random(values.random_seed)
        return (b"%d" % source.randrange(limit) for _ in count())
    return None


class _Committing:
    """A transactional producer, of which each run of the bench is a transaction."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self.send = producer.send
        self.partition_for = producer.partition_for
        self.flush = producer.commit


async def _run(
    bench: ProduceBench, values: Namespace, payloads: Iterator[bytes], begin: Callable[[], None] | None
) -> None:
    """Write all records; with `begin` in transactions that take --transaction-duration-ms."""
    from millstream.commands.bench.producing import slice_size
    from millstream.terminal.progress import Progress

    first = list(islice(payloads, 1))
    slices = _slices(bench, chain(first, payloads), values, slice_size(first, values.throughput))
    progress = Progress(_Reported(bench, values.reporting_interval / 1000).look)
    duration = (values.transaction_duration_ms or TRANSACTION_MS) / 1000
    if begin is None:
        return await bench.run(slices, values.throughput, progress)
    for each in slices:
        begin()
        await bench.run(
            _until(chain([each], slices), time.monotonic() + duration), values.throughput, progress
        )


def _slices(
    bench: ProduceBench, payloads: Iterator[bytes], values: Namespace, size: int
) -> Iterator[list[bytes]]:
    """Yield the payloads in lists of up to `size`. After the warm-up, start the bench's second summary."""
    warmup = max(0, values.warmup_records)
    for begin in range(0, warmup, size):
        yield list(islice(payloads, min(size, warmup - begin)))
    if warmup:
        bench.begin_steady()
    for begin in range(warmup, values.num_records, size):
        yield list(islice(payloads, min(size, values.num_records - begin)))


def _until(slices: Iterator[list[bytes]], deadline: float) -> Iterator[list[bytes]]:
    """Yield slices until the deadline has passed."""
    for each in slices:
        yield each
        if time.monotonic() >= deadline:
            return


class _Reported:
    """A line about each interval."""

    def __init__(self, bench: ProduceBench, interval: float) -> None:
        self._bench = bench
        self._interval = interval
        self._is_steady = False
        self._at = time.perf_counter()
        self._window = bench.window()

    def look(self, done: float) -> None:
        """Print a line when it is time; `done`: records so far."""
        seconds = time.perf_counter() - self._at
        if seconds < self._interval:
            return
        window, self._window = self._window, self._bench.window()
        self._at += seconds
        if self._bench.steady is not None and not self._is_steady:
            print("In steady state.")
            self._is_steady = True
        print(
            f"{window.count} records sent, {window.count / seconds:.1f} records/sec "
            f"({window.bytes_sent / seconds / MB:.2f} MB/sec), {window.average_ms:.1f} ms avg latency, "
            f"{window.max_ms:.1f} ms max latency."
        )


def _total(latencies: Latencies, size: int, seconds: float, state: str = "") -> str:
    seconds = max(seconds, 0.001)
    middle, p95, p99, p999 = latencies.percentiles_ms(0.5, 0.95, 0.99, 0.999)
    return (
        f"{latencies.count}{state} records sent, {latencies.count / seconds:.1f} records/sec "
        f"({size / seconds / MB:.2f} MB/sec), {latencies.average_ms:.2f} ms avg latency, "
        f"{latencies.max_ms:.2f} ms max latency, {middle} ms 50th, {p95} ms 95th, {p99} ms 99th, "
        f"{p999} ms 99.9th."
    )


app = tool(OPTIONS, main)
