"""Three brokers are restarted one after the other, under load: what producers notice.

    python -m benchmarks.rolling [--runs N] [--partitions N]

Three replicas, acks=all, `min.insync.replicas=2`. Our producer and librdkafka's, each idempotent and with the
settings it has unless told otherwise, send one record after the other to each partition. The next broker is
restarted when all replicas are in sync again. A pause is the time between two acknowledgements of one
partition; an error is what a producer raises or tells, for good.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from benchmarks.nodes import Nodes, started
from benchmarks.report import Report
from kafka_client import Admin, BatchProducer, Client, TopicPartition
from kafka_client.errors import MillstreamError

BROKERS = (1, 2, 3)
PAUSE_S = 0.01
"""Between two records to a partition."""
STEADY_S = 3.0
"""Before the first restart."""
RECORD = b"v" * 100


class Acknowledgements:
    """Acknowledgements of one producer's records."""

    def __init__(self, partitions: int) -> None:
        self.acknowledged = 0
        self.errors = 0
        self.longest_s = 0.0
        self._last = [time.perf_counter()] * partitions

    def acknowledge(self, partition: int) -> None:
        """Count an acknowledged record of a partition."""
        now = time.perf_counter()
        self.longest_s = max(self.longest_s, now - self._last[partition])
        self._last[partition] = now
        self.acknowledged += 1

    def begin(self) -> None:
        """Measure the longest pause from now on."""
        self.longest_s = 0.0


class Load(Protocol):
    """A producer's load, as a context manager."""

    acknowledgements: Acknowledgements

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...


class Ours:
    """The load of a `BatchProducer`."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.acknowledgements = Acknowledgements(partitions)
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._is_over = True
        await self._task

    async def _run(self) -> None:
        async with Client(self._bootstrap) as client, BatchProducer(client, acks=-1) as producer:
            await asyncio.gather(*(self._produce(producer, index) for index in range(self._partitions)))

    async def _produce(self, producer: BatchProducer, partition: int) -> None:
        while not self._is_over:
            try:
                await (await producer.send(self._topic, partition, [(0, None, RECORD, ())]))
            except MillstreamError as error:
                print(f"ours: {error}")
                self.acknowledgements.errors += 1
            else:
                self.acknowledgements.acknowledge(partition)
            await asyncio.sleep(PAUSE_S)


class Librdkafka:
    """The load of a confluent-kafka producer."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        from confluent_kafka import Producer

        self.acknowledgements = Acknowledgements(partitions)
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        self._is_over = threading.Event()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(asyncio.to_thread(self._run))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._is_over.set()
        await self._task

    def _run(self) -> None:
        waits = [False] * self._partitions

        def delivered(error: object, message: Any) -> None:
            partition = message.partition()
            waits[partition] = False
            if error is None:
                self.acknowledgements.acknowledge(partition)
            else:
                print(f"librdkafka: {error}")
                self.acknowledgements.errors += 1

        while not self._is_over.is_set():
            for partition, is_waiting in enumerate(waits):
                if not is_waiting:
                    waits[partition] = True
                    self._producer.produce(
                        self._topic,
                        RECORD,
                        partition=partition,
                        on_delivery=delivered,
                    )
            self._producer.poll(PAUSE_S)
        self._producer.flush(60)


class Run:
    """A cluster whose brokers are restarted once."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self.stopped_s: list[float] = []
        self.acknowledgements: dict[str, Acknowledgements] = {}

    def play(self) -> Run:
        """Start, write, restart, and compare the records in the logs with the acknowledged ones."""
        with (
            tempfile.TemporaryDirectory() as name,
            started(Path(name), {"zookeeper.session.timeout.ms": 18_000}) as nodes,
        ):
            asyncio.run(self._watch(nodes))
        return self

    async def _watch(self, nodes: Nodes) -> None:
        topics: dict[str, type[Ours] | type[Librdkafka]] = {"ours": Ours, "librdkafka": Librdkafka}
        replicas = {index: [(index + step) % 3 + 1 for step in range(3)] for index in range(self._partitions)}
        for topic in topics:
            await asyncio.to_thread(nodes.create_topic, topic, replicas)
        loads: dict[str, Load] = {
            topic: made(nodes.bootstrap, topic, self._partitions) for topic, made in topics.items()
        }
        async with loads["ours"], loads["librdkafka"]:
            await asyncio.sleep(STEADY_S)
            for load in loads.values():
                load.acknowledgements.begin()
            for id_ in BROKERS:
                began = time.perf_counter()
                await asyncio.to_thread(nodes.stop, id_)
                self.stopped_s.append(time.perf_counter() - began)
                await asyncio.to_thread(nodes.start, id_)
                await self._in_sync(nodes, tuple(topics))
        self.acknowledgements = {topic: load.acknowledgements for topic, load in loads.items()}
        async with Client(nodes.bootstrap) as client:
            for topic, acknowledgements in self.acknowledgements.items():
                ends = await Admin(client).list_offsets(
                    dict.fromkeys((TopicPartition(topic, index) for index in replicas), "latest")
                )
                written = sum(end.offset for end in ends.values())
                assert written == acknowledgements.acknowledged, (
                    f"{topic}: {written} there, {acknowledgements.acknowledged} told"
                )

    async def _in_sync(self, nodes: Nodes, topics: Sequence[str]) -> None:
        async with Client(nodes.bootstrap) as client:
            while True:
                described = await Admin(client).describe_topics(list(topics))
                if all(
                    len(partition.isr) == len(BROKERS)
                    for topic in described.values()
                    for partition in topic.partitions.values()
                ):
                    return
                await asyncio.sleep(0.05)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--partitions", type=int, default=6, help="of each producer")
    parser.add_argument("--runs", type=int, default=3)
    options, _ = parser.parse_known_args()
    runs = [Run(options.partitions).play() for _ in range(options.runs)]
    report = Report(f"{options.partitions} partitions for each producer, three brokers restarted in turn")
    report.add("a broker stops, the longest: s", [max(run.stopped_s) for run in runs])
    for name in ("ours", "librdkafka"):
        acknowledgements = [run.acknowledgements[name] for run in runs]
        report.add(f"{name}: records acknowledged", [each.acknowledged for each in acknowledgements])
        report.add(f"{name}: errors", [each.errors for each in acknowledgements], "0")
        report.add(f"{name}: longest pause of a partition, s", [each.longest_s for each in acknowledgements])
    report.show()


if __name__ == "__main__":
    main()
