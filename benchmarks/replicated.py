"""What replication costs: one partition with one replica and with three, acks=all, on one machine.

    python -m benchmarks.replicated [--frames N] [--runs N]

The client sends prebuilt requests, five of them unanswered at a time. With three replicas two followers copy
and answer on the same cores: the rate is what this machine gives, the CPU what each process takes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import raw
from benchmarks.cpu import cpu_seconds
from benchmarks.nodes import Nodes, started
from benchmarks.report import Report
from logd.records import build_batch
from logd.wire.produce import encode_produce_request

IN_FLIGHT = 5
KINDS = (("1 KB records, 1 MB batches", 1000, 1), ("1 KB records, 16 KB batches", 16, 40))
"""Records of a batch; how many times as many requests."""


class Taken(NamedTuple):
    """By one run: megabytes written and seconds, CPU seconds of the leader and of a follower."""

    megabytes: float
    seconds: float
    leader: float
    follower: float


def taken(nodes: Nodes, topic: str, records: int, frames: int) -> Taken:
    """Write so many requests with acks=all; a run ends when followers have everything."""
    batch = build_batch([(1_700_000_000_000, None, b"v" * 1024, ())] * records)
    frame = b"".join(encode_produce_request([(topic, [(0, batch)])], 7, 1, "bench", acks=-1))
    before = {id_: cpu_seconds(broker.pid) for id_, broker in nodes.brokers.items()}
    leader = nodes.brokers[1]
    with raw.connect(leader.host, leader.port) as connection:
        began = time.perf_counter()
        raw.stream(connection, frame, frames, in_flight=IN_FLIGHT)
        seconds = time.perf_counter() - began
    used = {id_: cpu_seconds(broker.pid) - before[id_] for id_, broker in nodes.brokers.items()}
    return Taken(len(batch) * frames / 1e6, seconds, used[1], (used[2] + used[3]) / 2)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--frames", type=int, default=400, help="requests of 1 MB in a run")
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each figure (one more warms up)")
    options, _ = parser.parse_known_args()
    report = Report("acks=all, one replica and three")
    with tempfile.TemporaryDirectory() as name, started(Path(name), {"min.insync.replicas": 1}) as nodes:
        nodes.create_topic("one", {0: [1]})
        nodes.create_topic("three", {0: [1, 2, 3]})
        for kind, records, times in KINDS:
            runs: list[tuple[Taken, Taken]] = []
            for _ in range(options.runs + 1):
                frames = options.frames * times
                runs.append((taken(nodes, "one", records, frames), taken(nodes, "three", records, frames)))
            show(report, kind, runs[1:])
    report.show()


def show(report: Report, kind: str, runs: list[tuple[Taken, Taken]]) -> None:
    """The figures of one kind of requests."""
    ones, threes = zip(*runs, strict=True)
    report.add(f"{kind}: one replica, MB/s", [run.megabytes / run.seconds for run in ones])
    report.add("  three replicas, MB/s", [run.megabytes / run.seconds for run in threes])
    report.add(
        "  ratio",
        [
            three.megabytes / three.seconds / (one.megabytes / one.seconds)
            for one, three in zip(ones, threes, strict=True)
        ],
    )
    report.add("  one replica: leader, CPU ms per MB", [run.leader * 1e3 / run.megabytes for run in ones])
    report.add("  three: leader, CPU ms per MB", [run.leader * 1e3 / run.megabytes for run in threes])
    report.add("  three: a follower, CPU ms per MB", [run.follower * 1e3 / run.megabytes for run in threes])
    report.add(
        "  a follower against the leader of one replica",
        [
            three.follower / three.megabytes / (one.leader / one.megabytes)
            for one, three in zip(ones, threes, strict=True)
        ],
        "≤ 0.5",
    )


if __name__ == "__main__":
    main()
