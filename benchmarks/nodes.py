"""Several `logd` processes that share one ZooKeeper server, in a folder, for figures of a cluster."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from benchmarks.broker import Broker
from kafka_client import Admin, Client, NewTopic
from millstream.demo.ports import free_port
from millstream.zookeeper.ensemble import Ensemble

T = TypeVar("T")

SESSION_MS = 6_000
TICK_MS = 1_000


class Nodes:
    """A cluster of logd's brokers; `brokers` are by id, including those that were killed."""

    def __init__(self, folder: Path, zookeeper: str, count: int, settings: Mapping[str, object]) -> None:
        self.brokers: dict[int, Broker] = {}
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._commands: dict[int, list[str]] = {}
        port = 19093
        for id_ in range(1, count + 1):
            port = free_port(port + 1)
            options: dict[str, object] = {
                "node.id": id_,
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "log.dirs": folder / str(id_),
                "zookeeper.connect": zookeeper,
                "zookeeper.session.timeout.ms": SESSION_MS,
                "min.insync.replicas": 2,
                **settings,
            }
            self._commands[id_] = [sys.executable, "-m", "logd"]
            for key, value in options.items():
                self._commands[id_] += ["--override", f"{key}={value}"]
            self.brokers[id_] = Broker("127.0.0.1", port, 0)

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: all running brokers."""
        return ",".join(self.brokers[id_].bootstrap for id_ in self._processes)

    def start(self, *ids: int) -> None:
        """Start brokers, and wait until each has its partitions from the controller."""
        for id_ in ids:
            process = self._processes[id_] = subprocess.Popen(
                self._commands[id_], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            before = self.brokers[id_]
            self.brokers[id_] = Broker(before.host, before.port, process.pid)
        for id_ in ids:
            output = self._processes[id_].stdout
            assert output is not None and output.readline().startswith("logd ready"), (
                f"broker {id_} did not start"
            )

    def stop(self, id_: int) -> None:
        """Stop a broker by SIGTERM: a controlled shutdown."""
        self._end(id_, signal.SIGTERM)

    def kill(self, id_: int) -> None:
        """Kill a broker by SIGKILL."""
        self._end(id_, signal.SIGKILL)

    def _end(self, id_: int, number: signal.Signals) -> None:
        process = self._processes.pop(id_)
        process.send_signal(number)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def end(self) -> None:
        """Kill all brokers; their data is discarded."""
        for id_ in tuple(self._processes):
            self.kill(id_)

    def ask(self, question: Callable[[Admin], Awaitable[T]]) -> T:
        """Call `question` with an admin client of the cluster, and return its result."""

        async def run() -> T:
            async with Client(self.bootstrap) as client:
                return await question(Admin(client))

        return asyncio.run(run())

    def create_topic(self, name: str, assignments: Mapping[int, Sequence[int]]) -> None:
        """Create a topic with these replicas, the leader first. Return once all are in sync."""
        self.ask(lambda admin: admin.create_topics([NewTopic(name, assignments=assignments)]))
        self.until(lambda: self.leaders(name) == {index: ids[0] for index, ids in assignments.items()})

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader of each partition, -1 if it has none."""

        async def question(admin: Admin) -> dict[int, int]:
            described = (await admin.describe_topics([topic]))[topic]
            return {index: partition.leader for index, partition in described.partitions.items()}

        return self.ask(question)

    @staticmethod
    def until(holds: Callable[[], bool]) -> None:
        """Wait until `holds` returns True."""
        while not holds():
            time.sleep(0.01)


@contextmanager
def started(
    folder: Path, settings: Mapping[str, object], *, count: int = 3, controller: int = 1
) -> Iterator[Nodes]:
    """Run a cluster with this broker as its controller while the body runs."""
    with ExitStack() as stack:
        ensemble = stack.enter_context(Ensemble(folder / "zookeeper", tick_ms=TICK_MS))
        nodes = Nodes(folder, f"{ensemble.connect_string}/bench", count, settings)
        stack.callback(nodes.end)
        nodes.start(controller)
        nodes.start(*(nodes.brokers.keys() - {controller}))
        yield nodes
