"""Millstream's streams beside Kafka Streams: the same jobs over the same broker, in turns.

    python -m benchmarks.streams_kafka --kafka JARS [--broker kafka|logd] [--only tumbling,sessions]
        [--runs N] [--scale F]

JARS is the folder of Apache Kafka's jars, Kafka Streams' among them; javac is needed, too. One instance with
one thread each, caches of the same size, at least once. Figures are of the steady part: between 30 % and
95 % of the records, when a JVM is warm. Counted are the records that jobs begin with; what passes internal
topics comes on top on both sides. Each run has a group, a state folder and internal topics of its own.
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
from contextlib import contextmanager
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
"""What each reads."""
SIDES = ("millstream", "kafka-streams")
CACHE = 64 << 20
JVM = (
    *("-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)
"""As Kafka's own scripts start one."""
SETTINGS = {
    "log.retention.ms": -1,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.replication.factor": 1,
    "auto.create.topics.enable": "false",
}


class Sample(NamedTuple):
    """How far a run was at a moment: seconds, CPU seconds, records taken in."""

    at: float
    cpu: float
    records: int


class Figures(NamedTuple):
    """Of one run: records a second and CPU seconds per million, both of the steady part; the peak, MB."""

    rate: float
    cpu: float
    megabytes: float


class Bench(NamedTuple):
    """What every run needs."""

    bootstrap: str
    counts: dict[str, int]
    jars: str
    classes: str
    folder: Path

    def command(self, side: str, job: str) -> list[str]:
        """The command line of a run; its words are a line of JSON ten times a second."""
        application, state = f"{job.replace('_', '-')}-{uuid.uuid4().hex[:8]}", self.folder / uuid.uuid4().hex
        if side == "millstream":
            settings = {"state.dir": state, "replication.factor": 1, "statestore.cache.max.bytes": CACHE}
            return [
                *(
                    sys.executable,
                    "-m",
                    "millstream",
                    "streams",
                    "run",
                    f"benchmarks.streams_kafka.jobs:{job}",
                ),
                *("--bootstrap-server", self.bootstrap, "--application-id", application),
                *(word for key, value in settings.items() for word in ("--override", f"{key}={value}")),
                *("--exit-when-caught-up", "--status-interval", "0.1"),
            ]
        least = sum(self.counts[topic] for topic in JOBS[job])
        return [
            *("java", *JVM, "-cp", f"{self.classes}{os.pathsep}{self.jars}/*", "StreamsJobs", job),
            *(self.bootstrap, application, str(state), str(CACHE), str(least)),
        ]

    def run(self, side: str, job: str) -> Figures:
        """One run from its start to its end."""
        samples: list[Sample] = []
        peak = 0.0
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        process = subprocess.Popen(
            self.command(side, job), stdout=subprocess.PIPE, text=True, env=environment
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


def _show(bench: Bench, job: str, runs: int) -> None:
    figures: dict[str, list[Figures]] = {side: [] for side in SIDES}
    for round_ in range(runs):
        for side in SIDES if round_ % 2 == 0 else SIDES[::-1]:
            figures[side].append(bench.run(side, job))
    ours, theirs = (figures[side] for side in SIDES)
    report = Report(f"streams: {job}, steady part")
    for side, found in figures.items():
        report.add(f"{side}: records/s", [each.rate for each in found])
        report.add(f"{side}: CPU s per million", [each.cpu for each in found])
        report.add(f"{side}: peak memory, MB", [each.megabytes for each in found])
    report.add("records/s, as a ratio", _ratios(ours, theirs, "rate"), "≥ 1")
    report.add("CPU, as a ratio", _ratios(ours, theirs, "cpu"), "≤ 0.8")
    report.add("memory, as a ratio", _ratios(ours, theirs, "megabytes"))
    report.show()


def _ratios(ours: list[Figures], theirs: list[Figures], figure: str) -> list[float]:
    """Of each of our runs to their median."""
    base = median(getattr(each, figure) for each in theirs)
    return [getattr(each, figure) / base for each in ours]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", type=Path, required=True, help="the folder of Kafka's jars")
    parser.add_argument("--broker", choices=("kafka", "logd"), default="kafka")
    parser.add_argument("--only", default=",".join(JOBS), help="jobs, by commas")
    parser.add_argument("--runs", type=int, default=3, help="of each job and side")
    parser.add_argument("--scale", type=float, default=1.0, help="of the amounts")
    options = parser.parse_args()
    javac = shutil.which("javac") or sys.exit("Kafka Streams' side needs javac")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        classes = str(folder / "classes")
        source = str(Path(__file__).parent / "StreamsJobs.java")
        subprocess.run([javac, "-cp", f"{options.kafka}/*", "-d", classes, source], check=True)
        with _broker(options.broker, options.kafka, folder) as broker:
            data.create(broker.bootstrap)
            counts = asyncio.run(data.fill(broker.bootstrap, options.scale))
            bench = Bench(broker.bootstrap, counts, str(options.kafka), classes, folder)
            for job in options.only.split(","):
                _show(bench, job, options.runs)


if __name__ == "__main__":
    main()
