"""CPU of a consumer with many partitions assigned, few of them active, in its own process.

python -m benchmarks.assigned [--partitions N] [--active N] [--rate N] [--bootstrap-server HOST:PORT]

A process of its own produces `--rate` records of 1 KB a second to each of the active partitions. What is
measured is the fetcher: CPU of this process while it is up to date, as a share of one core, and its requests.
The same without fetch sessions beside it, and with nothing active.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import raw
from benchmarks.broker import Broker, arguments, broker_for
from benchmarks.report import Report
from kafka_client import BatchFetcher, Client, TopicPartition
from kafka_client.records import build_batch
from kafka_client.wire.produce import encode_produce_request

RECORD = build_batch([(1_600_000_000_000, None, b"v" * 1024, ())])


def feed(host: str, port: int, topic: str, active: int, rate: float) -> None:
    """Produce to each active partition in turn, evenly, until the process is ended."""
    with raw.connect(host, port) as connection:
        drain = raw.Drain(connection)
        pause, due, sent = 1 / (rate * active), time.monotonic(), 0
        while True:
            records = [(topic, [(sent % active, RECORD)])]
            connection.sendall(b"".join(encode_produce_request(records, 7, 1, "bench", acks=1)))
            drain.frame()
            sent += 1
            due += pause
            time.sleep(max(0.0, due - time.monotonic()))


@contextmanager
def feeding(broker: Broker, topic: str, options: argparse.Namespace, rate: float) -> Iterator[None]:
    """Run a process that produces while the body runs; at a rate of 0 run none."""
    if not rate:
        yield
        return
    where = [broker.host, str(broker.port), topic, str(options.active), str(rate)]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.assigned", "--feed", *where])
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


async def measure(
    broker: Broker, topic: str, options: argparse.Namespace, *, fetch_sessions: bool
) -> tuple[float, float, float]:
    """Return the cost of a fetcher that is assigned all partitions, at their ends.

    The result is (CPU in % of a core, requests per second, records per second). The fetcher runs twice for
    `options.seconds`, and only the second run is measured.
    """
    partitions = [TopicPartition(topic, number) for number in range(options.partitions)]
    async with Client(broker.bootstrap) as client:
        async with BatchFetcher(client, fetch_sessions=fetch_sessions) as fetcher:
            fetcher.assign(dict.fromkeys(partitions, -1))
            while any(fetcher.position(tp) < 0 for tp in partitions):
                await fetcher.fetch(timeout_ms=100)
            for _ in range(2):
                records, end = 0, time.monotonic() + options.seconds
                cpu, requests = time.process_time(), fetcher.statistics()["requests_sent"]
                while (left := end - time.monotonic()) > 0:
                    handed = await fetcher.fetch(timeout_ms=int(left * 1000) + 1)
                    records += sum(fetched.record_count for fetched in handed)
                cpu = time.process_time() - cpu
                requests = fetcher.statistics()["requests_sent"] - requests
    return 100 * cpu / options.seconds, requests / options.seconds, records / options.seconds


def main() -> None:
    """Run the benchmark."""
    if sys.argv[1:2] == ["--feed"]:
        host, port, name, active, each = sys.argv[2:]
        feed(host, int(port), name, int(active), float(each))
        return
    parser = arguments(__doc__ or "")
    parser.add_argument("--partitions", type=int, default=10_000, help="how many are assigned")
    parser.add_argument("--active", type=int, default=50, help="how many of them get records")
    parser.add_argument("--rate", type=float, default=1.0, help="records a second of each active one")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long one run is measured")
    options = parser.parse_args()
    topic = f"bench-assigned-{options.partitions}"
    report = Report(f"a consumer of {options.partitions:,} partitions, {options.active} active")
    with broker_for(options) as broker:
        raw.create_topic(broker.bootstrap, topic, options.partitions)
        for name, rate, sessions, target in (
            ("nothing active", 0, True, ""),
            (f"{options.active} active, {options.rate:g} records/s each", options.rate, True, "≤ 5"),
            ("the same without fetch sessions", options.rate, False, ""),
        ):
            with feeding(broker, topic, options, rate):
                runs = [
                    asyncio.run(measure(broker, topic, options, fetch_sessions=sessions))
                    for _ in range(options.runs)
                ]
            report.add(f"{name}: CPU, % of a core", [run[0] for run in runs], target)
            report.add("  µs per request", [run[0] * 1e4 / max(run[1], 1) for run in runs])
            report.add("  requests/s", [run[1] for run in runs])
            report.add("  records/s", [run[2] for run in runs])
    report.show()


if __name__ == "__main__":
    main()
