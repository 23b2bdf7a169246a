"""Millstream's streams beside Kafka Streams: the same jobs over the same broker, in turns.

    python -m benchmarks.streams_kafka --kafka JARS [--broker kafka|logd|own] [--only tumbling,sessions]
        [--guarantee at_least_once|exactly_once_v2|both] [--runs N] [--scale F]

JARS is the folder of Apache Kafka's jars with Kafka Streams; javac is needed, too. Each side runs one
instance with one thread, caches of the same size, and at least once with a commit every second by default.
Figures are those of the steady part, between 30 % and 95 % of the records, when a JVM is warm. They count the
jobs' input records, not the records of internal topics. Each run has a group, a state folder and internal
topics of its own. ``--broker own`` runs Millstream over logd and Kafka Streams over Apache Kafka.

``--guarantee both`` measures the cost of exactly once. Each side runs each job under both guarantees in
turns, with a commit every COMMIT_MS ms in all runs. The price is the ratio of time, and of the process's CPU,
to the side's own at least once.
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
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import kafka_nodes
from benchmarks.broker import Broker, start_logd
from benchmarks.cpu import cpu_seconds
from benchmarks.report import Report
from benchmarks.streams_kafka import data

JOBS = {
    "stateless": ("events",),
    "table_join": ("events", "users"),
    "word_count": ("lines",),
    "word_count_uncached": ("lines",),
    "tumbling": ("events",),
    "hopping": ("events",),
    "sessions": ("events",),
    "suppressed": ("events",),
    "stream_join": ("events", "others"),
    "foreign_join": ("orders", "users"),
}
"""The input topics of each job."""
SIDES = ("millstream", "kafka-streams")
GUARANTEES = ("at_least_once", "exactly_once_v2")
COMMIT_MS = 100
"""Commit interval if a guarantee is named: the default of exactly once, but not of at least once."""
STEADY_COMMIT_MS = 1000
"""Commit interval otherwise. The default of at least once is 30 s, and a run is shorter than that. So the
records that a cached table sends at commits, and their processing, would not be measured.
"""
CACHE = 64 << 20
JVM = (
    *("-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)
"""The JVM options of Kafka's own scripts."""
SETTINGS = {
    "log.retention.ms": -1,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "auto.create.topics.enable": "false",
}


class Sample(NamedTuple):
    """The progress of a run at a moment: seconds, CPU seconds, records read."""

    at: float
    cpu: float
    records: int


class Figures(NamedTuple):
    """The figures of one run: records/s and CPU seconds per million of the steady part; peak memory in MB."""

    rate: float
    cpu: float
    megabytes: float


class Bench(NamedTuple):
    """The parameters of all runs."""

    bootstraps: dict[str, str]
    """The bootstrap servers of each side."""
    counts: dict[str, int]
    jars: str
    classes: str
    folder: Path

    def command(self, side: str, job: str, guarantee: str | None = None) -> list[str]:
        """Return the command line of a run, which prints a line of JSON ten times a second."""
        application, state = f"{job.replace('_', '-')}-{uuid.uuid4().hex[:8]}", self.folder / uuid.uuid4().hex
        bootstrap = self.bootstraps[side]
        settings: dict[str, object] = {
            "statestore.cache.max.bytes": CACHE,
            "commit.interval.ms": STEADY_COMMIT_MS,
        }
        if guarantee is not None:
            settings |= {"processing.guarantee": guarantee, "commit.interval.ms": COMMIT_MS}
        if side == "millstream":
            settings |= {"state.dir": state, "replication.factor": 1}
            return [
                *(
                    sys.executable,
                    "-m",
                    "millstream",
                    "streams",
                    "run",
                    f"benchmarks.streams_kafka.jobs:{job}",
                ),
                *("--bootstrap-server", bootstrap, "--application-id", application),
                *(word for key, value in settings.items() for word in ("--override", f"{key}={value}")),
                *("--exit-when-caught-up", "--status-interval", "0.1"),
            ]
        least = sum(self.counts[topic] for topic in JOBS[job])
        return [
            *("java", *JVM, "-cp", f"{self.classes}{os.pathsep}{self.jars}/*", "StreamsJobs", job),
            *(bootstrap, application, str(state), str(least)),
            *(f"{key}={value}" for key, value in settings.items()),
        ]

    def run(self, side: str, job: str, guarantee: str | None = None) -> Figures:
        """Run a job from start to end. Return its figures."""
        samples: list[Sample] = []
        peak = 0.0
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        process = subprocess.Popen(
            self.command(side, job, guarantee), stdout=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        with process:
            for line in process.stdout:
                records = json.loads(line).get("records_in")
                if records is not None:
                    samples.append(Sample(time.perf_counter(), cpu_seconds(process.pid), records))
                    peak = max(peak, _peak_mb(process.pid))
        if process.returncode:
            sys.exit(f"{side} {job} ended with {process.returncode}")
        return self._figures(job, samples, peak)

    def _figures(self, job: str, samples: list[Sample], peak: float) -> Figures:
        all_ = samples[-1].records
        steady = [sample for sample in samples if 0.3 * all_ <= sample.records <= 0.95 * all_]
        if len(steady) < 3:
            sys.exit(f"{job} was over too soon to be measured: raise --scale")
        first, last = steady[0], steady[-1]
        part = (last.records - first.records) / all_
        records = part * sum(self.counts[topic] for topic in JOBS[job])
        return Figures(records / (last.at - first.at), (last.cpu - first.cpu) / records * 1e6, peak)


def _peak_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    peaks = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(next(peaks, "0")) / 1024


@contextmanager
def _broker(kind: str, jars: Path, folder: Path) -> Iterator[Broker]:
    if kind == "logd":
        overrides = [f"{key}={value}" for key, value in SETTINGS.items()]
        with start_logd(folder / "logd", overrides, quiet=True) as (broker, _):
            yield broker
        return
    with kafka_nodes.started(folder, jars, SETTINGS, count=1) as nodes:
        yield nodes.brokers[1]


@contextmanager
def _brokers(kind: str, jars: Path, folder: Path) -> Iterator[dict[str, Broker]]:
    """Run the brokers. Yield the broker of each side."""
    with ExitStack() as stack:
        kinds = ("logd", "kafka") if kind == "own" else (kind,)
        brokers = {each: stack.enter_context(_broker(each, jars, folder)) for each in kinds}
        yield {side: brokers[kinds[at % len(kinds)]] for at, side in enumerate(SIDES)}


def _show(bench: Bench, job: str, runs: int, guarantee: str | None) -> None:
    figures: dict[str, list[Figures]] = {side: [] for side in SIDES}
    for round_ in range(runs):
        for side in SIDES if round_ % 2 == 0 else SIDES[::-1]:
            figures[side].append(bench.run(side, job, guarantee))
    ours, theirs = (figures[side] for side in SIDES)
    report = Report(f"streams: {job}, {(guarantee or GUARANTEES[0]).replace('_', ' ')}, steady part")
    for side, runs_of_side in figures.items():
        report.add(f"{side}: records/s", [each.rate for each in runs_of_side])
        report.add(f"{side}: CPU s per million", [each.cpu for each in runs_of_side])
        report.add(f"{side}: peak memory, MB", [each.megabytes for each in runs_of_side])
    report.add("records/s, as a ratio", _ratios(ours, theirs, "rate"), "≥ 1")
    report.add("CPU, as a ratio", _ratios(ours, theirs, "cpu"), "≤ 0.8")
    report.add("memory, as a ratio", _ratios(ours, theirs, "megabytes"))
    report.show()


def _show_price(bench: Bench, job: str, runs: int) -> None:
    """Print the cost of exactly once on each side."""
    kinds = [(side, guarantee) for guarantee in GUARANTEES for side in SIDES]
    figures: dict[tuple[str, str], list[Figures]] = {kind: [] for kind in kinds}
    for round_ in range(runs):
        for kind in kinds if round_ % 2 == 0 else kinds[::-1]:
            figures[kind].append(bench.run(kind[0], job, kind[1]))
    report = Report(f"streams: {job}, a commit every {COMMIT_MS} ms, steady part")
    for side in SIDES:
        least, once = (figures[side, guarantee] for guarantee in GUARANTEES)
        for guarantee in GUARANTEES:
            runs_of_side, named = figures[side, guarantee], f"{side}, {guarantee.replace('_', ' ')}"
            report.add(f"{named}: records/s", [each.rate for each in runs_of_side])
            report.add(f"{named}: CPU s per million", [each.cpu for each in runs_of_side])
        target = "≤ 1.15" if side == SIDES[0] else ""
        times = [1 / ratio for ratio in _ratios(once, least, "rate")]
        report.add(f"{side}: price of exactly once, in time", times, target)
        report.add(f"{side}: price of exactly once, in CPU", _ratios(once, least, "cpu"), target)
    report.show()


def _ratios(ours: list[Figures], theirs: list[Figures], figure: str) -> list[float]:
    """Return the ratio of each of our runs to the median of theirs."""
    base = median(getattr(each, figure) for each in theirs)
    return [getattr(each, figure) / base for each in ours]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", type=Path, required=True, help="the folder of Kafka's jars")
    parser.add_argument("--broker", choices=("kafka", "logd", "own"), default="kafka")
    parser.add_argument("--only", default=",".join(JOBS), help="jobs, by commas")
    parser.add_argument("--guarantee", choices=(*GUARANTEES, "both"), help="both: what exactly once costs")
    parser.add_argument("--runs", type=int, default=3, help="of each job and side")
    parser.add_argument("--scale", type=float, default=1.0, help="of the amounts")
    options = parser.parse_args()
    jobs = options.only.split(",")
    javac = shutil.which("javac") or sys.exit("Kafka Streams' side needs javac")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        classes = str(folder / "classes")
        source = str(Path(__file__).parent / "StreamsJobs.java")
        subprocess.run([javac, "-cp", f"{options.kafka}/*", "-d", classes, source], check=True)
        with _brokers(options.broker, options.kafka, folder) as brokers:
            bootstraps = {side: broker.bootstrap for side, broker in brokers.items()}
            inputs = {topic for job in jobs for topic in JOBS[job]}
            counts: dict[str, int] = {}
            for bootstrap in sorted(set(bootstraps.values())):
                data.create(bootstrap)
                counts = asyncio.run(data.fill(bootstrap, options.scale, inputs))
            bench = Bench(bootstraps, counts, str(options.kafka), classes, folder)
            for job in jobs:
                if options.guarantee == "both":
                    _show_price(bench, job, options.runs)
                else:
                    _show(bench, job, options.runs, options.guarantee)


if __name__ == "__main__":
    main()
