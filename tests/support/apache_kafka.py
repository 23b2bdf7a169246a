"""A real Apache Kafka broker as a process, to compare with: the face of `LogdProcess`.

with ApacheKafka(tmp_path / "kafka") as kafka:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from logd.storage.checkpoints import encode_uuid
from tests.support import java
from tests.support.broker_process import BrokerProcess
from tests.support.logd_process import QUICK_GROUPS
from tests.support.ports import free_port

READY_SECONDS = 200.0
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
NODE_ID = 1


class ApacheKafka(BrokerProcess):
    """A single KRaft node; its log directory is ``folder/data``, its output ``folder/kafka.log``.

    ``features``: levels the folder is formatted with, where they are not to be the newest. ``libs``: the
    folder of another version's jars.
    """

    def __init__(
        self,
        folder: Path,
        overrides: Mapping[str, object] | None = None,
        *,
        features: Mapping[str, int] | None = None,
        libs: str = java.LIBS,
    ) -> None:
        super().__init__(folder, "kafka.log")
        self._features = dict(features or {})
        self._libs = libs
        self.data = folder / "data"
        self._archive, self._draft = java.archive(libs), folder / "classes.jsa"
        self.port = free_port()
        controller = free_port()
        self.settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": NODE_ID,
            "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 5,
            # Records of tests may be of 1970, and Kafka would look for what is too old 30 s after its start.
            "log.initial.task.delay.ms": 3_600_000,
            **QUICK_GROUPS,
            **(overrides or {}),
        }

    def start(self) -> Self:
        """Format the folder if it is new, start, and wait until it serves."""
        before = len(self.log)
        self.spawn()
        return self.wait_until_ready(before)

    def spawn(self) -> None:
        """Format the folder if it is new, and begin a start."""
        properties = _write(self.folder, self.settings)
        if not (self.data / "meta.properties").exists():
            self._format(properties)
        self._draft.unlink(missing_ok=True)
        shared = self._archive.use_or_write(self._draft)
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                java.command(
                    "kafka.Kafka",
                    str(properties),
                    options=["-Dorg.slf4j.simpleLogger.defaultLogLevel=info"],
                    shared=shared,
                    libs=self._libs,
                ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def wait_until_ready(self, before: int = 0) -> Self:
        """Behind `spawn`; `before`: how long its log was then."""
        deadline = time.monotonic() + READY_SECONDS
        while "Kafka Server started" not in self.log[before:]:
            assert self.is_running, f"Kafka ended:\n{self.log[before:]}"
            assert time.monotonic() < deadline, f"Kafka is not ready:\n{self.log[before:]}"
            time.sleep(0.05)
        return self

    @property
    def log_without_startup_errors(self) -> str:
        """The node's log without the errors that a lone node may log at its start.

        It registers with its controller before that is active, is told which is (itself), and tries again. On
        a busy machine it calls its own slowness an error.
        """
        refused = r"^.*ERROR kafka\.server\.ControllerApis .*\n.*NotControllerException.*\n"
        slow = r"^.*ERROR org\.apache\.kafka\.controller\.EventPerformanceMonitor .*\n"
        return re.sub(f"{refused}|{slow}", "", self.log, flags=re.MULTILINE)

    def _format(self, properties: Path) -> None:
        levels = tuple(f"{name}={level}" for name, level in self._features.items())
        if self.settings["log.dirs"] == self.data:
            shutil.copytree(_formatted(self._libs, levels).name, self.data, dirs_exist_ok=True)
            _identify(self.data / "meta.properties", self.settings["node.id"])
        else:
            _run_storage_tool(properties, self._libs, levels)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._archive.is_missing and self.is_running:
            self.stop()  # one of the first, which write it for all others
            self._archive.keep(self._draft)
        super().__exit__(kind, error, traceback)
        if kind is None:
            shutil.rmtree(self.data, ignore_errors=True)


@cache
def _formatted(libs: str, levels: tuple[str, ...]) -> TemporaryDirectory[str]:
    """Return a log directory as Kafka's tool formats it: only its ids are a single broker's."""
    made = TemporaryDirectory(prefix="formatted-")
    settings = {
        "process.roles": "broker,controller",
        "node.id": NODE_ID,
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:1",
        "listeners": "PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": made.name,
    }
    with TemporaryDirectory() as folder:
        _run_storage_tool(_write(Path(folder), settings), libs, levels)
    return made


def _identify(path: Path, node_id: object) -> None:
    """Give a copy of a formatted folder the ids of its own."""
    text = re.sub(r"^node\.id=.*$", f"node.id={node_id}", path.read_text(), flags=re.MULTILINE)
    own = f"directory.id={encode_uuid(uuid.uuid4().bytes)}"
    path.write_text(re.sub(r"^directory\.id=.*$", own, text, flags=re.MULTILINE))


def _run_storage_tool(properties: Path, libs: str, levels: tuple[str, ...]) -> None:
    options = [part for level in levels for part in ("--feature", level)]
    done = java.run_tool(
        "kafka.tools.StorageTool",
        *("format", "-t", CLUSTER_ID, "-c", str(properties), *options),
        libs=libs,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _write(folder: Path, settings: Mapping[str, object]) -> Path:
    """Write the properties file that Kafka is started with, and return its path."""
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path
