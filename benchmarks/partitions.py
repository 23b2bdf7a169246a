"""The cost of many partitions: idle CPU and memory, descriptors, and the latency of producing to one.

    python -m benchmarks.partitions [--partitions N] [--seconds N] [--runs N]

Every partition has one record, so that each has a log. Latency is that of one 1 KB record at a time to one
partition. It is measured with all the other partitions, and on a broker without them.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks import raw
from benchmarks.broker import Broker, arguments, start_logd
from benchmarks.cpu import cpu_seconds, resident_bytes
from benchmarks.fill import Filler
from benchmarks.report import Report
from kafka_client.records import build_batch
from kafka_client.wire.produce import encode_produce_request

MANY, ONE = "bench-many", "bench-one"
PRODUCES = 5_000
"""Requests of a counted run."""
PAUSE_SECONDS = 0.001
"""Pause between two requests: the benchmark measures latency, not throughput."""


def p99_ms(broker: Broker) -> float:
    """Return the 99th percentile of a produce request's latency, in ms."""
    batch = build_batch([(1_700_000_000_000, None, b"v" * 1024, ())])
    frame = b"".join(encode_produce_request([(ONE, [(0, batch)])], 7, 1, "bench", acks=1))
    seconds = []
    with raw.connect(broker.host, broker.port) as connection:
        drain = raw.Drain(connection)
        for _ in range(PRODUCES):
            started = time.perf_counter()
            connection.sendall(frame)
            drain.frame()
            seconds.append(time.perf_counter() - started)
            time.sleep(PAUSE_SECONDS)
    return sorted(seconds)[len(seconds) * 99 // 100] * 1000


def idle_percent(broker: Broker, seconds: float) -> float:
    """Return the CPU of the broker without any requests, in % of one core."""
    before = cpu_seconds(broker.pid)
    time.sleep(seconds)
    return (cpu_seconds(broker.pid) - before) / seconds * 100


def descriptors(broker: Broker) -> int:
    """Return the number of the broker's open file descriptors."""
    return len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))


def main() -> None:
    """Run the benchmark."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--partitions", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long idling is watched")
    options = parser.parse_args()
    if options.bootstrap_server:
        print("partitions: skipped, it starts a logd of its own to compare with")
        return
    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        with start_logd(Path(few)) as (one, _), start_logd(Path(many)) as (broker, _):
            for started in (one, broker):
                raw.create_topic(started.bootstrap, ONE)
            raw.create_topic(broker.bootstrap, MANY, options.partitions)
            filler = Filler(MANY, options.partitions)
            filler.fill(broker, filler.round_bytes)
            alone, among, ratio = [], [], []
            for run in range(options.runs + 1):
                figures = p99_ms(one), p99_ms(broker)
                if run:
                    alone.append(figures[0])
                    among.append(figures[1])
                    ratio.append(figures[1] / figures[0])
            idle = [idle_percent(broker, options.seconds) for _ in range(options.runs)]
            megabytes = resident_bytes(broker.pid) / 1e6
            open_files = descriptors(broker)
        # A clean start opens every log and leaves none open.
        with start_logd(Path(many), quiet=True) as (broker, _):
            started_megabytes = resident_bytes(broker.pid) / 1e6
            started_files = descriptors(broker)
    report = Report(f"{options.partitions:,} partitions")
    report.add("idle: % of a core", idle, "≤ 2")
    report.add("resident memory, all written to: MB", [megabytes], "≤ 400")
    report.add("resident memory after a start: MB", [started_megabytes], "≤ 400")
    report.add("open descriptors, all written to", [open_files], "≤ 1,100")
    report.add("open descriptors after a start", [started_files])
    report.add("produce p99, one partition: ms", alone)
    report.add("produce p99, among all: ms", among)
    report.add("  ratio", ratio, "≤ 2")
    report.show()


if __name__ == "__main__":
    main()
