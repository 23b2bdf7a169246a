"""Millstream's streams beside faust-streaming and quixstreams: the same work on the same topic, in one run.

    python -m benchmarks.streams_peers [--cache DIR] [--records N] [--runs N] [--bootstrap-server HOST:PORT]

Each peer has an environment of its own below ``--cache``, filled by pip the first time, and a process of its
own with one partition. Rounds alternate. ``stateless`` changes each value and drops half of them. ``count``
counts by key in RocksDB with a changelog, and writes each new count. Figures exclude the first tenth of the
records, and with it the start and the rebalance.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import uuid
import venv
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import raw
from benchmarks.broker import arguments, broker_for
from benchmarks.report import Report
from kafka_client import BatchProducer, Client
from kafka_client.records import NewRecord

PROGRAMS = Path(__file__).parent / "peers"
WORK = ("stateless", "count")
KEYS = 10_000
CHUNK = 5000


class Peer(NamedTuple):
    """A library to measure.

    needs: its requirements for pip; if empty, it runs in this environment. share: the part of the records it
    gets, smaller for slow libraries.
    """

    name: str
    needs: str
    share: float = 1


PEERS = (
    Peer("millstream", ""),
    Peer("quix", "quixstreams>=3.20", 0.2),
    Peer("faust", "faust-streaming[rocksdict]>=0.11.3", 0.1),
)


class Figures(NamedTuple):
    """The figures of one run: records per second, and per CPU second of its process."""

    by_clock: float
    by_cpu: float


def python_of(peer: Peer, cache: Path) -> Path:
    """Return the peer's interpreter. Create its environment if it is missing."""
    if not peer.needs:
        return Path(sys.executable)
    folder = cache / peer.name
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", peer.needs], check=True)
        (folder / "installed").touch()
    return python


async def fill(bootstrap: str, count: int) -> None:
    """Write the topic that is read."""
    drawn = random.Random(7)
    values = [bytes(drawn.choices(range(ord("a"), ord("z") + 1), k=100)) for _ in range(5000)]
    records: list[NewRecord] = []
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        numbers = iter(range(count))
        while chunk := list(islice(numbers, CHUNK)):
            records = [(n, b"user-%d" % drawn.randrange(KEYS), values[n % len(values)], ()) for n in chunk]
            await producer.send("records", 0, records)
        await producer.flush()


def run(peer: Peer, python: Path, work: str, bootstrap: str, records: int) -> Figures:
    """Run a peer from the beginning of the topic, with a group and a state folder of its own."""
    program = PROGRAMS / f"{peer.name}_app.py"
    environment = {**os.environ, "PYTHONPATH": os.getcwd() if not peer.needs else ""}
    with tempfile.TemporaryDirectory() as folder:
        application = f"{peer.name}-{work}-{uuid.uuid4().hex[:8]}"
        command = [str(python), str(program), work, bootstrap, application, folder, str(records)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    return Figures(result["records"] / result["seconds"], result["records"] / result["cpu"])


def main() -> None:
    """Run the benchmark."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--cache", type=Path, default=Path("build/peers"), help="where environments are kept")
    parser.add_argument("--records", type=int, default=1_000_000, help="of the topic")
    options = parser.parse_args()
    pythons = {peer: python_of(peer, options.cache.absolute()) for peer in PEERS}
    with broker_for(options) as broker:
        for topic in ("records", *(f"{peer.name}-{work}" for peer in PEERS for work in WORK)):
            raw.create_topic(broker.bootstrap, topic)
        if not raw.topic_end(broker.bootstrap, "records"):
            asyncio.run(fill(broker.bootstrap, options.records))
        for work in WORK:
            show(work, options.runs, options.records, pythons, broker.bootstrap)


def show(work: str, runs: int, records: int, pythons: dict[Peer, Path], bootstrap: str) -> None:
    """Measure one kind of work, in rounds, and print it."""
    figures: dict[Peer, list[Figures]] = {peer: [] for peer in PEERS}
    for _ in range(runs):
        for peer, python in pythons.items():
            figures[peer].append(run(peer, python, work, bootstrap, int(records * peer.share)))
    report = Report(f"streams: {work}, one partition, one process")
    ours = median(each.by_cpu for each in figures[PEERS[0]])
    for peer, runs_of_peer in figures.items():
        report.add(f"{peer.name}: records per second", [each.by_clock for each in runs_of_peer])
        report.add(f"{peer.name}: records per CPU second", [each.by_cpu for each in runs_of_peer])
        if peer.needs:
            target = "≥ 20" if peer.name == "faust" else ""
            report.add(
                f"millstream / {peer.name}, by CPU", [ours / each.by_cpu for each in runs_of_peer], target
            )
    report.show()


if __name__ == "__main__":
    main()
