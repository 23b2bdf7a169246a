"""The cost of replication: partitions with one replica and with three, acks=all, on one machine.

    python -m benchmarks.replicated [--frames N] [--runs N] [--kafka JARS]

The clients send prebuilt requests; each client has its own partition, and `Kind` bounds its requests in
flight. With three replicas, two followers replicate on the same cores: the rate is this machine's, the CPU
that of each process. With a folder of Apache Kafka's jars, three of its brokers get the same requests
afterwards.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks import kafka_nodes, raw
from benchmarks.cpu import cpu_seconds
from benchmarks.nodes import Nodes, started
from benchmarks.report import Report
from kafka_client.records import build_batch
from kafka_client.wire.produce import encode_produce_request


class Kind(NamedTuple):
    """A kind of requests.

    records: of 1 KB in a batch. times: factor of the number of requests. in_flight: requests of each client.
    """

    name: str
    records: int
    times: int
    clients: int
    in_flight: int


KINDS = (
    Kind("1 MB batches, one partition", 1000, 1, 1, 5),
    Kind("16 KB batches, one partition", 16, 16, 1, 5),
    Kind("16 KB batches, 50 partitions", 16, 40, 50, 2),
)
PARTITIONS = max(kind.clients for kind in KINDS)


class Cost(NamedTuple):
    """The cost of one run: megabytes written, seconds, CPU seconds of the leader and of a follower."""

    megabytes: float
    seconds: float
    leader: float
    follower: float


def measure_run(nodes: Nodes, topic: str, kind: Kind, frames: int) -> Cost:
    """Write `frames` requests with acks=all. Return the cost once the followers have all records."""
    batch = build_batch([(1_700_000_000_000, None, b"v" * 1024, ())] * kind.records)
    requests = [
        b"".join(encode_produce_request([(topic, [(index, batch)])], 7, 1, "bench", acks=-1))
        for index in range(kind.clients)
    ]
    before = {id_: cpu_seconds(broker.pid) for id_, broker in nodes.brokers.items()}
    began = time.perf_counter()
    write(nodes, requests, frames, kind.in_flight)
    seconds = time.perf_counter() - began
    used = {id_: cpu_seconds(broker.pid) - before[id_] for id_, broker in nodes.brokers.items()}
    return Cost(len(batch) * frames / 1e6, seconds, used[1], (used[2] + used[3]) / 2)


def write(nodes: Nodes, requests: list[bytes], frames: int, in_flight: int) -> None:
    """Send `frames` requests in turn, each partition's on a connection of its own."""
    leader = nodes.brokers[1]
    with ExitStack() as stack:
        connections = [stack.enter_context(raw.connect(leader.host, leader.port)) for _ in requests]
        drains = [raw.Drain(connection, 1 << 16) for connection in connections]
        rounds = frames // len(requests)
        for number in range(rounds + in_flight):
            for connection, request, drain in zip(connections, requests, drains, strict=True):
                if number >= in_flight:
                    drain.frame()
                if number < rounds:
                    connection.sendall(request)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--frames", type=int, default=400, help="requests of 1 MB in a run")
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each figure (one more warms up)")
    parser.add_argument("--kafka", type=Path, help="a folder of Apache Kafka's jars, to measure it as well")
    options, _ = parser.parse_known_args()
    report = Report("acks=all, one replica and three")
    settings = {"min.insync.replicas": 1}
    with tempfile.TemporaryDirectory() as name, started(Path(name), settings) as nodes:
        measure(report, nodes, "", options.frames, options.runs)
    if options.kafka is not None:
        with (
            tempfile.TemporaryDirectory() as name,
            kafka_nodes.started(Path(name), options.kafka, settings) as kafka,
        ):
            measure(report, kafka, "Kafka, ", options.frames, options.runs)
    report.show()


def measure(report: Report, nodes: Nodes, who: str, frames: int, runs: int) -> None:
    """Measure one cluster and add its figures to the report."""
    nodes.create_topic("one", dict.fromkeys(range(PARTITIONS), (1,)))
    nodes.create_topic("three", dict.fromkeys(range(PARTITIONS), (1, 2, 3)))
    for kind in KINDS:
        costs = [
            (
                measure_run(nodes, "one", kind, frames * kind.times),
                measure_run(nodes, "three", kind, frames * kind.times),
            )
            for _ in range(runs + 1)
        ]
        show(report, who + kind.name, costs[1:])


def show(report: Report, kind: str, runs: list[tuple[Cost, Cost]]) -> None:
    """Add the figures of one kind of requests to the report."""
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
