"""How fast an application that has lost its state folder restores its stores, from a broker, as a whole.

    python -m benchmarks.streams_restore [--records 2000000] [--runs N] [--guarantees exactly_once_v2]
        [--stores rocksDB,in_memory] [--kafka JARS]

An application with one table of PARTITIONS partitions reads the records under each guarantee, which fills its
changelog. With exactly once it has a transaction, and so control records, every 100 ms. Then, for each kind
of store, its state folder is deleted, and it is started again in a process of its own. It is measured from
the beginning of its first restore until it is running, by the clock and by its process's CPU time. Keys have
16 bytes and come in no order; values have 20 bytes.

With ``--kafka``, the folder of Apache Kafka's jars, Kafka Streams does the same over Apache Kafka in turns;
javac is needed then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import kafka_nodes, raw
from benchmarks.broker import start_logd
from benchmarks.report import Report
from benchmarks.streams_kafka.__main__ import GUARANTEES, JVM, SETTINGS
from kafka_client import BatchProducer, Client
from kafka_client.records import NewRecord

PARTITIONS = 4
CHUNK = 10_000
ODD = 0x9E3779B97F4A7C15
"""Multiplication with it puts 64-bit numbers into another order, each once."""
TARGET = "≥ 300,000"


class Side(NamedTuple):
    """An application that is measured, and the broker it runs over."""

    name: str
    program: list[str]
    bootstrap: str

    def run(self, phase: str, application: str, folder: Path, records: int, settings: dict[str, str]) -> str:
        """Run the program to its end. Return the figures that it printed."""
        return subprocess.run(
            [
                *(*self.program, phase, self.bootstrap, application, str(folder), str(records)),
                *(f"{key}={value}" for key, value in settings.items()),
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        ).stdout


class Figures(NamedTuple):
    """The figures of one restore: records per second, and per CPU second."""

    by_clock: float
    by_cpu: float


def main() -> None:
    """Run the benchmark."""
    options = _options()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        sides = list(_sides(stack, Path(name), options.kafka))
        for side in sides:
            raw.create_topic(side.bootstrap, "records", PARTITIONS)
            asyncio.run(_fill(side.bootstrap, options.records))
        for guarantee in options.guarantees.split(","):
            for side in sides:
                settings = {"processing.guarantee": guarantee}
                side.run("fill", guarantee, Path(name, side.name), options.records, settings)
            for store in options.stores.split(","):
                _show(sides, Path(name), guarantee, store, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--guarantees", default=",".join(GUARANTEES), help="by commas")
    parser.add_argument("--stores", default="rocksDB,in_memory", help="kinds of them, by commas")
    parser.add_argument("--runs", type=int, default=3, help="of each")
    parser.add_argument("--kafka", type=Path, help="the folder of Kafka's jars: measure Kafka Streams, too")
    return parser.parse_args()


def _sides(stack: ExitStack, folder: Path, jars: Path | None) -> Iterator[Side]:
    overrides = [f"{key}={value}" for key, value in SETTINGS.items()]
    broker, _ = stack.enter_context(start_logd(folder / "logd", overrides, quiet=True))
    program = [sys.executable, "-m", "benchmarks.streams_restore.application"]
    yield Side("millstream", program, broker.bootstrap)
    if jars is None:
        return
    javac = shutil.which("javac") or sys.exit("Kafka Streams' side needs javac")
    classes = str(folder / "classes")
    source = str(Path(__file__).parent / "StreamsRestore.java")
    subprocess.run([javac, "-cp", f"{jars}/*", "-d", classes, source], check=True)
    nodes = stack.enter_context(kafka_nodes.started(folder, jars, SETTINGS, count=1))
    program = ["java", *JVM, "-cp", f"{classes}{os.pathsep}{jars}/*", "StreamsRestore"]
    yield Side("kafka-streams", program, nodes.brokers[1].bootstrap)


async def _fill(bootstrap: str, count: int) -> None:
    now = int(time.time() * 1000)
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        left = iter(range(count))
        while numbers := list(islice(left, CHUNK)):
            records: list[NewRecord] = [
                (now, b"%016x" % (number * ODD % (1 << 64)), b"%020d" % number, ()) for number in numbers
            ]
            for partition, part in producer.partitioned("records", records, PARTITIONS).items():
                await producer.send("records", partition, part)
        await producer.flush()


def _show(sides: list[Side], folder: Path, guarantee: str, store: str, options: argparse.Namespace) -> None:
    settings = {"processing.guarantee": guarantee, "default.dsl.store": store}
    figures: dict[str, list[Figures]] = {side.name: [] for side in sides}
    for round_ in range(options.runs):
        for side in sides if round_ % 2 == 0 else sides[::-1]:
            state = folder / side.name
            shutil.rmtree(state, ignore_errors=True)
            result = json.loads(side.run("restore", guarantee, state, options.records, settings))
            restored = result["records"]
            if restored != options.records:
                sys.exit(f"{side.name} restored {restored:,} of {options.records:,} records")
            figures[side.name].append(Figures(restored / result["seconds"], restored / result["cpu"]))
    report = Report(f"{options.records:,} records restored, {guarantee.replace('_', ' ')}, {store}")
    for side in sides:
        runs_of_side = figures[side.name]
        target = TARGET if side is sides[0] else ""
        report.add(f"{side.name}: records per second", [each.by_clock for each in runs_of_side])
        report.add(f"{side.name}: records per CPU second", [each.by_cpu for each in runs_of_side], target)
    if len(sides) > 1:
        ours, theirs = (median(each.by_cpu for each in figures[side.name]) for side in sides)
        report.add("per CPU second, as a ratio", [ours / theirs])
    report.show()


if __name__ == "__main__":
    main()
