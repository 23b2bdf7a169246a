"""`kafka-consumer-perf-test`: how fast records are read, in ConsumerPerformance's words and columns."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import JavaError, illegal_argument
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Old, Options, OptionValues, option_error
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.options.properties import key_values
from millstream.kafka_tools.running import (
    HELP,
    VERSION,
    Cluster,
    failed,
    read_client_properties,
    read_or_usage,
    tool,
)

if TYPE_CHECKING:
    from kafka_client import Consumer
    from millstream.commands.bench.consuming import ConsumeBench
    from millstream.terminal.session import Session

OPTIONS = Options(
    "This tool is used to verify the consumer performance.",
    [
        Option("bootstrap-server", "REQUIRED: The servers to connect to.", "server to connect to"),
        Option("topic", "The topic to read.", "topic"),
        Option("include", "Read every topic whose whole name matches.", "Java regex (String)"),
        Option("group", "The group to read as.", "gid"),
        Option("fetch-size", "Bytes that a fetch brings of a partition.", "size"),
        Option("from-latest", "Begin at the end where the group has no offset."),
        Option("socket-buffer-size", "Has no effect: the system sizes the buffers.", "size"),
        Option("command-property", "A property of the consumer.", "prop1=val1"),
        Option("command-config", "A file with properties of the consumer.", "config file"),
        Option("consumer.config", "Deprecated: --command-config.", "config file"),
        Option("print-metrics", "Print the consumer's metrics."),
        Option("show-detailed-stats", "Print a line for each reporting interval."),
        Option("timeout", "ms without a record that end it.", "milliseconds", optional=True),
        Option("num-records", "REQUIRED: How many records to read.", "count"),
        Option("messages", "Deprecated: --num-records.", "count"),
        Option("reporting-interval", "ms between two lines.", "interval_ms"),
        Option("date-format", "The form of times, by java.text.SimpleDateFormat.", "date format"),
        Option("hide-header", "Print no header."),
        HELP,
        VERSION,
    ],
    old={
        "broker-list": Old("--bootstrap-server", "bootstrap-server"),
        "zookeeper": ZOOKEEPER,
    },
)
FETCH_SIZE = 1024 * 1024
TIMEOUT_MS = 10_000
REPORTING_MS = 5_000
DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"
MB = 1024 * 1024
COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, "
    "fetch.MB.sec, fetch.nMsg.sec"
)


def main(arguments: Sequence[str]) -> int:
    """Read records, and print the rates."""
    values = read_or_usage(OPTIONS, arguments)
    _check(values)
    if not values.has("hide-header"):
        first = "time, threadId" if values.has("show-detailed-stats") else "start.time, end.time"
        print(f"{first}, {COLUMNS}")
    try:
        run = _Run(values)
        cluster = Cluster.create(values.text("bootstrap-server") or "", None, run.properties)
        cluster.run(run.all, "poll")
    except JavaError as error:
        return failed(str(error), error)
    return 0


def _check(values: OptionValues) -> None:
    """End with Java's message if options contradict each other. Print deprecation warnings to stdout."""
    values.required("bootstrap-server")
    for names in (("topic", "include"), ("messages", "num-records")):
        if values.count(*names) != 1:
            listed = ", ".join(f"[{name}]" for name in names)
            values.usage(f"Exactly one of the following arguments is required: {listed}")
    values.excluded("consumer.config", "command-config")
    for former, today in (("messages", "num-records"), ("consumer.config", "command-config")):
        if values.has(former):
            print(f"Warning: --{former} is deprecated. Use --{today} instead.")


class _Run:
    """A measurement and its report. Raises JavaError for an invalid option."""

    def __init__(self, values: OptionValues) -> None:
        from millstream.kafka_tools.java.java_dates import date_pattern

        self._values = values
        self.properties = _properties(values)
        self._record_count = (
            values.integer("num-records" if values.has("num-records") else "messages", 64) or 0
        )
        self._timeout_ms = values.integer("timeout", 64) or TIMEOUT_MS
        self._interval = _interval_ms(values) / 1000
        self._date_format = date_pattern(values.text("date-format") or DATE_FORMAT)
        self._began = self._reported_at = time.time()
        self._reported = (0, 0)
        self._rebalance_reported = False

    async def all(self, session: Session) -> None:
        """Read records, and print the measured rates."""
        from kafka_client import Consumer
        from kafka_client.properties import ClientProperties
        from millstream.commands.bench.consuming import ConsumeBench
        from millstream.kafka_tools.performance.metrics_table import print_metrics
        from millstream.terminal.progress import Progress

        bench = ConsumeBench()
        settings = ClientProperties.layered(self.properties, "").consumer()
        group = self._values.text("group") or f"perf-consumer-{random.randrange(100_000)}"
        self._began = self._reported_at = bench.began_at = time.time()
        async with Consumer(session.client, group, **settings) as consumer:
            await self._join(consumer, bench)
            progress = Progress(lambda done: self._look(bench))
            await bench.run(consumer, self._record_count, self._timeout_ms, progress)
            if bench.records < self._record_count:
                # As in Java, the time until the timeout counts.
                bench.ended_at = time.time()
                print(
                    "WARNING: Exiting before consuming the expected number of records: timeout "
                    f"({self._timeout_ms} ms) exceeded. You can use the --timeout option to increase the "
                    "timeout."
                )
        if not self._values.has("show-detailed-stats"):
            self._tell_total(bench)
        if self._values.has("print-metrics"):
            print_metrics(session.client.metrics)

    async def _join(self, consumer: Consumer, bench: ConsumeBench) -> None:
        await consumer.subscribe(self._topics())
        await consumer.wait_assigned()
        bench.assigned_at = time.time()

    def _topics(self) -> list[str] | re.Pattern[str]:
        if (text := self._values.text("include")) is None:
            return [self._values.text("topic") or ""]
        try:
            return re.compile(text)
        except re.error as error:
            raise JavaError("java.util.regex.PatternSyntaxException", str(error)) from None

    def _look(self, bench: ConsumeBench) -> None:
        """Print a line about the records since the last line if the interval is over."""
        now = time.time()
        if now - self._reported_at < self._interval:
            return
        records, size = self._reported
        if self._values.has("show-detailed-stats"):
            seconds = now - self._reported_at
            rebalance = 0.0 if self._rebalance_reported else bench.assigned_at - bench.began_at
            rates = _rates(bench.bytes_read - size, bench.records - records, seconds)
            fetching = _rates(bench.bytes_read - size, bench.records - records, seconds - rebalance)
            print(
                f"{self._shown(now)}, 0, {bench.bytes_read / MB:.4f}, {rates[0]:.4f}, {bench.records}, "
                f"{rates[1]:.4f}, {rebalance * 1000:.0f}, {(seconds - rebalance) * 1000:.0f}, "
                f"{fetching[0]:.4f}, {fetching[1]:.4f}"
            )
        self._rebalance_reported = True
        self._reported_at, self._reported = now, (bench.records, bench.bytes_read)

    def _tell_total(self, bench: ConsumeBench) -> None:
        seconds, rebalance = bench.ended_at - bench.began_at, bench.assigned_at - bench.began_at
        rates = _rates(bench.bytes_read, bench.records, seconds)
        fetching = _rates(bench.bytes_read, bench.records, seconds - rebalance)
        print(
            f"{self._shown(bench.began_at)}, {self._shown(bench.ended_at)}, {bench.bytes_read / MB:.4f}, "
            f"{rates[0]:.4f}, {bench.records}, {rates[1]:.4f}, {rebalance * 1000:.0f}, "
            f"{(seconds - rebalance) * 1000:.0f}, {fetching[0]:.4f}, {fetching[1]:.4f}"
        )

    def _shown(self, seconds: float) -> str:
        from millstream.kafka_tools.java.java_dates import formatted

        return formatted(seconds, self._date_format)


def _rates(size: int, records: int, seconds: float) -> tuple[float, float]:
    """Return MB and records per second."""
    seconds = max(seconds, 0.001)
    return size / MB / seconds, records / seconds


def _interval_ms(values: OptionValues) -> int:
    text = values.text("reporting-interval")
    if text is None:
        return REPORTING_MS
    if not text.isdigit():
        raise option_error(
            "OptionArgumentConversion", f"Cannot parse argument '{text}' of option reporting-interval"
        )
    if int(text) == 0:
        raise illegal_argument("Reporting interval must be greater than 0.")
    return int(text)


def _properties(values: OptionValues) -> dict[str, str]:
    for name in ("fetch-size", "socket-buffer-size"):
        values.integer(name)
    return {
        "client.id": "perf-consumer-client",
        **read_client_properties(values.text("command-config") or values.text("consumer.config")),
        **key_values(values.texts("command-property")),
        "max.partition.fetch.bytes": values.text("fetch-size") or str(FETCH_SIZE),
        "auto.offset.reset": "latest" if values.has("from-latest") else "earliest",
    }


app = tool(OPTIONS, main)
