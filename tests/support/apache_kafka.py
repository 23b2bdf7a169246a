"""A real Apache Kafka broker as a process, to compare with: the face of `LogdProcess`.

with ApacheKafka(tmp_path / "kafka") as kafka:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import java
from tests.support.logd_process import QUICK_GROUPS, free_port

READY_SECONDS = 60.0
STOP_SECONDS = 30.0
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class ApacheKafka:
    """A single KRaft node; its log folder is ``folder/data``, its output ``folder/kafka.log``."""

    def __init__(self, folder: Path, overrides: Mapping[str, object] | None = None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        controller = free_port()
        self.settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 5,
            **QUICK_GROUPS,
            **(overrides or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "kafka.log"
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """All output of all starts."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Format the folder if it is new, start, and wait until it serves."""
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        if not (self.data / "meta.properties").exists():
            done = java.run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties))
            assert done.returncode == 0, done.stdout + done.stderr
        before = len(self.log)
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                java.command(
                    "kafka.Kafka",
                    str(properties),
                    options=["-Dorg.slf4j.simpleLogger.defaultLogLevel=info"],
                ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        deadline = time.monotonic() + READY_SECONDS
        while "Kafka Server started" not in self.log[before:]:
            assert self.is_running, f"Kafka ended:\n{self.log[before:]}"
            assert time.monotonic() < deadline, f"Kafka is not ready:\n{self.log[before:]}"
            time.sleep(0.05)
        return self

    def stop(self) -> None:
        """Stop cleanly by SIGTERM."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        if kind is None:
            shutil.rmtree(self.data, ignore_errors=True)
