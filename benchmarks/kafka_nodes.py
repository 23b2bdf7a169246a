"""Several brokers of Apache Kafka (KRaft) in a folder, with the face of `nodes.Nodes`, to compare with."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.broker import Broker
from benchmarks.nodes import Nodes
from millstream.demo.ports import free_port

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
HEAP = "-Xmx1g"


class KafkaNodes(Nodes):
    """A cluster of Apache Kafka's brokers, each of which is also a controller.

    `libs` is the directory of Kafka's jars.
    """

    def __init__(self, folder: Path, libs: Path, count: int, settings: Mapping[str, object]) -> None:
        self.brokers: dict[int, Broker] = {}
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._commands: dict[int, list[str]] = {}
        java = shutil.which("java") or sys.exit("Apache Kafka's brokers need java")
        ids = range(1, count + 1)
        ports: list[int] = []
        for _ in range(2 * count):
            ports.append(free_port(ports[-1] + 1 if ports else 29_093))
        voters = ",".join(f"{id_}@127.0.0.1:{ports[count + id_ - 1]}" for id_ in ids)
        for id_ in ids:
            self.brokers[id_] = Broker("127.0.0.1", ports[id_ - 1], 0)
            options: dict[str, object] = {
                "process.roles": "broker,controller",
                "node.id": id_,
                "controller.quorum.voters": voters,
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://127.0.0.1:{ports[id_ - 1]},"
                f"CONTROLLER://127.0.0.1:{ports[count + id_ - 1]}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{ports[id_ - 1]}",
                "log.dirs": folder / f"kafka-{id_}",
                **settings,
            }
            properties = folder / f"kafka-{id_}.properties"
            properties.write_text("".join(f"{key}={value}\n" for key, value in options.items()))
            run = [java, HEAP, "-cp", f"{libs}/*"]
            subprocess.run(
                [*run, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self._commands[id_] = [
                *run,
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
                "kafka.Kafka",
                str(properties),
            ]

    def start(self, *ids: int) -> None:
        """Start the brokers, and wait until each has reported that it runs."""
        logs = {}
        for id_ in ids:
            logs[id_] = Path(self._commands[id_][-1]).with_suffix(".log")
            with logs[id_].open("w") as log:
                process = self._processes[id_] = subprocess.Popen(
                    self._commands[id_], stdout=subprocess.PIPE, stderr=log, text=True
                )
            before = self.brokers[id_]
            self.brokers[id_] = Broker(before.host, before.port, process.pid)
        while not all("Kafka Server started" in log.read_text() for log in logs.values()):
            assert all(process.poll() is None for process in self._processes.values()), "a broker ended"
            time.sleep(0.1)


@contextmanager
def started(
    folder: Path, libs: Path, settings: Mapping[str, object], *, count: int = 3
) -> Iterator[KafkaNodes]:
    """Run a cluster while the body runs."""
    nodes = KafkaNodes(folder, libs, count, settings)
    try:
        nodes.start(*nodes.brokers)
        yield nodes
    finally:
        nodes.end()
