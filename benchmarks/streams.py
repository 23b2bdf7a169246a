"""Records a streams application takes in per second of its CPU time: a join, a count, the whole demo.

    python -m benchmarks.streams [--bootstrap-server HOST:PORT] [--runs N]

Each run is a process of its own that reads the flights from the beginning, commits and ends. Its CPU time
counts whole, Python's start and all threads of RocksDB included.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

import msgspec

from benchmarks import raw
from benchmarks.broker import arguments, broker_for
from benchmarks.report import Report
from benchmarks.topologies import AIRLINES, FLIGHTS, OUTPUT
from kafka_client import BatchProducer, Client
from kafka_client.records import NewRecord
from millstream.demo.flights import packaged, read_rows

TITLES = {
    "join": "the demo's join, written out: records per CPU s",
    "count": "a stateful count: records per CPU s",
    "delays": "the demo's application (join, windowed aggregation): records per CPU s",
}
CHUNK = 5000
TIMES = 3
"""How often the flights are written, so that a process's start weighs little."""


def flights() -> Iterable[NewRecord]:
    """Yield the flights as the demo's records, with the fields its application reads."""
    encode = msgspec.json.Encoder().encode
    rows = chain.from_iterable(read_rows(packaged("flights.csv.zip")) for _ in range(TIMES))
    for line, (carrier, day, delay) in enumerate(rows):
        time = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)
        yield time, carrier.encode(), encode({"carrier": carrier, "line": line, "dep_delay": delay}), ()


async def fill(bootstrap: str) -> int:
    """Write both topics. Return the number of flights."""
    airlines: list[NewRecord] = []
    for row in packaged("airlines.csv").read_text(encoding="utf-8").splitlines()[1:]:
        carrier, name = row.split(",", 1)
        airlines.append((0, carrier.encode(), msgspec.json.encode({"carrier": carrier, "name": name}), ()))
    records, written = iter(flights()), 0
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        await producer.send(AIRLINES, 0, airlines)
        while chunk := list(islice(records, CHUNK)):
            await producer.send(FLIGHTS, 0, chunk)
            written += len(chunk)
        await producer.flush()
    return written


def cpu_of_run(bootstrap: str, name: str, folder: Path) -> float:
    """Return the CPU seconds of one application from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        *(sys.executable, "-m", "millstream", "streams", "run", f"benchmarks.topologies:{name}"),
        *("--bootstrap-server", bootstrap, "--application-id", f"bench-{name}-{uuid.uuid4().hex[:8]}"),
        *("--override", f"state.dir={folder}", "--override", "replication.factor=1", "--exit-when-caught-up"),
    ]
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "").parse_args()
    report = Report("streams: one partition, one process")
    with tempfile.TemporaryDirectory() as name, broker_for(options) as broker:
        there = [raw.create_topic(broker.bootstrap, topic) for topic in (AIRLINES, FLIGHTS, OUTPUT)]
        count = (
            raw.topic_end(broker.bootstrap, FLIGHTS) if all(there) else asyncio.run(fill(broker.bootstrap))
        )
        for topology, title in TITLES.items():
            runs = [cpu_of_run(broker.bootstrap, topology, Path(name)) for _ in range(options.runs + 1)]
            report.add(title, [count / seconds for seconds in runs[1:]], "≥ 100,000")
    report.show()


if __name__ == "__main__":
    main()
