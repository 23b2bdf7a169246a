"""A broker is killed that leads many partitions: how long until each takes writes again.

    python -m benchmarks.takeover [--partitions N] [--clients N] [--runs N] [--session-ms N]
    python -m benchmarks.takeover --spread --partitions 10000 --clients 0 --runs 1

Three brokers, three replicas each, acks=all. Clients ask for metadata ten times a second each meanwhile. The
session with ZooKeeper has to end first: what is beyond it is ours. With `--spread` all brokers lead alike;
without it the one that is killed leads all. Each figure twice: the controller lives, and is the one killed.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.nodes import SESSION_MS, Nodes, started
from benchmarks.report import Report
from kafka_client import Admin, Client
from kafka_client.errors import MillstreamError
from kafka_client.records import build_batch
from kafka_client.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC, STEADY = "many", "steady"
KILLED, OTHERS = 1, (2, 3)
PARTITIONS_A_REQUEST = 500
LOOK_AGAIN_S = 0.05
PAUSE_S = 0.005
"""Between two records of the topic that no leader's death concerns."""
BATCH = build_batch([(1_700_000_000_000, None, b"v" * 100, ())])


def assignments(partitions: int, *, is_spread: bool) -> Mapping[int, Sequence[int]]:
    """Return the replicas of each partition, the leader first.

    If ``is_spread``, the brokers lead in turn; otherwise broker `KILLED` leads every partition.
    """
    if is_spread:
        return {index: [(index + step) % 3 + 1 for step in range(3)] for index in range(partitions)}
    return {index: [KILLED, *(OTHERS if index % 2 else reversed(OTHERS))] for index in range(partitions)}


async def written(client: Client, node: int, topic: str, indexes: Sequence[int]) -> list[int]:
    """Return the partitions that accepted a record with acks=all."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=5_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=index, records=BATCH) for index in indexes],
            )
        ],
    )
    try:
        response = await client.request(request, node=node, timeout_ms=6_000)
    except MillstreamError:
        return []
    return [
        answer.index
        for topics in response.responses
        for answer in topics.partition_responses
        if not answer.error_code
    ]


async def all_written(client: Client, partitions: int, began: float) -> list[float]:
    """Return the seconds from `began` until each partition accepted a record, in ascending order."""
    missing, seconds = set(range(partitions)), []
    while missing:
        try:
            described = (await Admin(client).describe_topics([TOPIC]))[TOPIC].partitions
        except MillstreamError:
            continue
        by_leader: dict[int, list[int]] = defaultdict(list)
        for index in sorted(missing):
            by_leader[described[index].leader].append(index)
        for leader, indexes in by_leader.items():
            if leader not in OTHERS:
                continue
            for start in range(0, len(indexes), PARTITIONS_A_REQUEST):
                took = await written(client, leader, TOPIC, indexes[start : start + PARTITIONS_A_REQUEST])
                seconds += [time.perf_counter() - began] * len(took)
                missing.difference_update(took)
        await asyncio.sleep(LOOK_AGAIN_S)
    return seconds


class Steady:
    """A writer to a partition of surviving brokers, with the time that each record took, in seconds."""

    def __init__(self, bootstrap: str) -> None:
        self.seconds: list[float] = []
        self._bootstrap = bootstrap
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with Client(self._bootstrap) as client:
            while True:
                began = time.perf_counter()
                await written(client, OTHERS[0], STEADY, [0])
                self.seconds.append(time.perf_counter() - began)
                await asyncio.sleep(PAUSE_S)

    def take_seconds(self) -> list[float]:
        """Return the seconds since the last call."""
        seconds, self.seconds = self.seconds, []
        return seconds

    async def stop(self) -> None:
        """Stop writing."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@contextmanager
def asking(nodes: Nodes, clients: int) -> Iterator[None]:
    """Run `clients` clients while the body runs, half of them at each surviving broker."""
    with ExitStack() as stack:
        for id_ in OTHERS if clients else ():
            bootstrap = nodes.brokers[id_].bootstrap
            command = [sys.executable, "-m", "benchmarks.metadata_clients", bootstrap, TOPIC]
            process = subprocess.Popen(
                [*command, str(clients // len(OTHERS))], stdout=subprocess.PIPE, text=True
            )
            stack.callback(end, process)
            assert process.stdout is not None
            for _ in range(clients // len(OTHERS)):
                process.stdout.readline()
        yield


def end(process: subprocess.Popen[str]) -> None:
    """Kill it."""
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def p99_ms(seconds: Sequence[float]) -> float:
    """Return the 99th percentile, in ms."""
    return sorted(seconds)[len(seconds) * 99 // 100] * 1e3


class Run:
    """A cluster of which one broker is killed once."""

    def __init__(self, options: argparse.Namespace, *, is_controller: bool) -> None:
        self._options = options
        self._controller = KILLED if is_controller else OTHERS[0]
        self.created_s = self.first_s = self.last_s = 0.0
        self.p99_before_ms = self.p99_during_ms = 0.0

    def play(self) -> Run:
        """Start, create, kill, and wait for every partition."""
        options = self._options
        settings = {"zookeeper.session.timeout.ms": options.session_ms}
        with (
            tempfile.TemporaryDirectory() as name,
            started(Path(name), settings, controller=self._controller) as nodes,
        ):
            nodes.create_topic(STEADY, {0: list(OTHERS)})
            began = time.perf_counter()
            nodes.create_topic(TOPIC, assignments(options.partitions, is_spread=options.spread))
            self.created_s = time.perf_counter() - began
            with asking(nodes, options.clients):
                asyncio.run(self._watch(nodes))
        return self

    async def _watch(self, nodes: Nodes) -> None:
        bootstrap = ",".join(nodes.brokers[id_].bootstrap for id_ in OTHERS)
        async with Client(bootstrap) as client:
            steady = Steady(bootstrap)
            await asyncio.sleep(5)
            self.p99_before_ms = p99_ms(steady.take_seconds())
            began = time.perf_counter()
            nodes.kill(KILLED)
            seconds = await all_written(client, self._options.partitions, began)
            self.p99_during_ms = p99_ms(steady.take_seconds())
            await steady.stop()
        self.last_s = seconds[-1]
        self.first_s = seconds[0]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--clients", type=int, default=200, help="that ask for metadata")
    parser.add_argument("--session-ms", type=int, default=SESSION_MS, help="zookeeper.session.timeout.ms")
    parser.add_argument("--spread", action="store_true", help="all brokers lead alike")
    parser.add_argument("--runs", type=int, default=3)
    options, _ = parser.parse_known_args()
    report = Report(
        f"{options.partitions:,} partitions, {options.clients} clients, a session of {options.session_ms} ms"
    )
    for is_controller in (False, True):
        runs = [Run(options, is_controller=is_controller).play() for _ in range(options.runs)]
        who = "a leader and the controller" if is_controller else "a leader"
        session = options.session_ms / 1e3
        report.add("created, and led where they are to be: s", [run.created_s for run in runs])
        report.add(
            f"{who} killed: all take writes after, s", [run.last_s for run in runs], f"≤ {session + 2:g}"
        )
        report.add("  beyond the session, s", [run.last_s - session for run in runs], "≤ 2")
        report.add("  produce p99 elsewhere, before: ms", [run.p99_before_ms for run in runs])
        report.add("  produce p99 elsewhere, until then: ms", [run.p99_during_ms for run in runs])
    report.show()


if __name__ == "__main__":
    main()
