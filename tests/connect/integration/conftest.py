"""A real broker, files to read, the worker in this process or as one of its own, and what is in a topic."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect.runtime import WorkerConfig
from kafka_client import Admin, BatchFetcher, Client
from tests.support.logd_process import LogdProcess
from tests.support.tracebacks import assert_no_tracebacks

SECONDS = 100.0
"""Until a wait is given up: only what hangs takes so long."""
_numbers = itertools.count()


@pytest.fixture(scope="session")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Yield a broker that these tests share; tests that stop a broker start their own."""
    with LogdProcess(tmp_path_factory.mktemp("logd"), {"group.min.session.timeout.ms": "500"}) as process:
        yield process


@pytest.fixture
def topic() -> str:
    """A name no other test uses."""
    return f"connect-{next(_numbers)}"


def worker_settings(bootstrap: str, folder: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "20",
        "listeners": "",
    }


async def _read(bootstrap: str, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return every record of a topic as (timestamp, key, value), one partition after the other."""
    async with Client(bootstrap) as client:
        partitions = (await client.metadata([topic])).partitions([topic])
        ends = await Admin(client).list_offsets(dict.fromkeys(partitions, "latest"))
        records_of: dict = {tp: [] for tp in partitions}
        async with BatchFetcher(client, auto_offset_reset="earliest") as fetcher:
            fetcher.assign(dict.fromkeys(partitions, 0))
            while any(fetcher.position(tp) < ends[tp].offset for tp in partitions):
                for fetched in await fetcher.fetch(timeout_ms=1000):
                    records_of[fetched.tp] += [record[1:4] for record in fetched.records()]
        return [record for records in records_of.values() for record in records]


class WorkerKit:
    """Settings for a worker in `folder`, and the worker as a process."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.settings = worker_settings(bootstrap, folder)
        self.output = folder / "worker.log"
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def port(self) -> int:
        """The broker's."""
        return int(self.bootstrap.rpartition(":")[2])

    def config(self, **changes: str) -> WorkerConfig:
        return WorkerConfig.parse(self.settings | {k.replace("_", "."): v for k, v in changes.items()})

    def source(self, path: Path | str, topic: str, **more: str) -> dict[str, str]:
        return {
            "name": f"source-{topic}",
            "connector.class": "plugins.files:FilesSource",
            "file": str(path),
            "topic": topic,
            "stop.at.eof": "true",
            "key.field": "n",
            "batch.size": "100",
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "1",
        } | {k.replace("_", "."): v for k, v in more.items()}

    def sink(self, path: Path, topic: str, **more: str) -> dict[str, str]:
        return {
            "name": f"sink-{topic}",
            "connector.class": "plugins.files:FilesSink",
            "topics": topic,
            "path": str(path),
            "file.records.max": "500",
        } | {k.replace("_", "."): v for k, v in more.items()}

    def spawn(self, *connectors: dict[str, str], options: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """`millstream connect standalone` with these connectors; its output goes to `output`."""
        worker = self.folder / "worker.properties"
        worker.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        files = []
        for i, connector in enumerate(connectors):
            files.append(self.folder / f"connector-{i}.json")
            files[-1].write_text(json.dumps(connector))
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "connect", "standalone", worker, *files, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._processes.append(process)
        return process

    def finish(self, *connectors: dict[str, str]) -> None:
        """Run until everything is done, and expect no failure."""
        process = self.spawn(*connectors, options=("--exit-when-done",))
        assert process.wait(SECONDS) == 0, self.output.read_text()

    def events(self) -> list[dict]:
        """Return the events that the worker has printed so far, without an unfinished last line."""
        *lines, _ = self.output.read_text().split("\n")
        return [json.loads(line) for line in lines if line.startswith("{")]

    def committed_line(self) -> int:
        """Return the line up to which the only source file is committed; 0 before the first commit."""
        path = Path(self.settings["offset.storage.file.filename"])
        if not path.exists():
            return 0
        return max((json.loads(line)[1]["line"] for line in path.read_text().splitlines()), default=0)

    def read(self, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
        return asyncio.run(_read(self.bootstrap, topic))

    def numbers(self, topic: str) -> list[int]:
        """Field `n` of every value of a topic."""
        return [int(json.loads(value or b"")["n"]) for _, _, value in self.read(topic)]

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait(SECONDS)

    def terminate(self, process: subprocess.Popen[bytes]) -> int:
        process.send_signal(signal.SIGTERM)
        return process.wait(SECONDS)

    def wait_until(self, condition, process: subprocess.Popen[bytes] | None = None) -> None:
        """Wait for a condition while the process lives."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert process is None or process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text() if self.output.exists() else None
            time.sleep(0.005)

    def end(self) -> None:
        """Kill what still runs; AssertionError if a worker has ever written a traceback of its own."""
        for process in self._processes:
            if process.poll() is None:
                self.kill(process)
        if self.output.exists():
            assert_no_tracebacks(self.output.read_text())


@pytest.fixture
def kit(logd: LogdProcess, tmp_path: Path) -> Iterator[WorkerKit]:
    """A worker's kit on the shared broker."""
    kit = WorkerKit(logd.bootstrap, tmp_path)
    yield kit
    kit.end()


@pytest.fixture
def make_kit(tmp_path: Path):
    """Kits on brokers of the test's own."""
    kits: list[WorkerKit] = []

    def make(bootstrap: str) -> WorkerKit:
        kits.append(WorkerKit(bootstrap, tmp_path))
        return kits[-1]

    yield make
    for kit in kits:
        kit.end()


@pytest.fixture
def rows(tmp_path: Path):
    """Writes a CSV of so many rows: n, s."""

    def write(count: int) -> Path:
        path = tmp_path / "rows.csv"
        path.write_text("n,s\n" + "".join(f"{n},row {n}\n" for n in range(count)))
        return path

    return write
