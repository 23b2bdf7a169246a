"""Standalone Connect workers for tests: each a process, as `millstream connect standalone` runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.testing.errors import BrokerError

if TYPE_CHECKING:
    from millstream.testing.broker import Broker

SECONDS_MAX = 100.0
"""The timeout of a start or stop, which only a hang reaches."""
LOOK_AGAIN_S = 0.02
DEFAULTS: Mapping[str, str] = {
    "key.converter": "string",
    "value.converter": "json",
    "value.converter.schemas.enable": "false",
    "offset.flush.interval.ms": "100",
}
_RUN = "import sys; sys.path[:] = {path!r}; from millstream.testing.connect_child import main; main()"


class ConnectWorkers:
    """The workers of a test, with their files in `folder`. Call it to start a worker; `stop` stops all."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._broker = broker
        self._folder = folder
        self._workers: list[ConnectWorker] = []

    def __call__(
        self, *connectors: Mapping[str, object], config: Mapping[str, object] | None = None
    ) -> ConnectWorker:
        """Start a worker with these connectors' settings. `config`: the worker's own, on top of `DEFAULTS`.

        Raises BrokerError with the worker's output if it does not start.
        """
        folder = self._folder / f"connect-{len(self._workers)}"
        folder.mkdir(parents=True)
        settings = {
            **DEFAULTS,
            "bootstrap.servers": self._broker.bootstrap_servers,
            "offset.storage.file.filename": str(folder / "offsets"),
            **(config or {}),
        }
        worker = ConnectWorker(folder, settings, connectors)
        self._workers.append(worker)
        worker.start()
        return worker

    def stop(self) -> None:
        """Stop all workers that run."""
        for worker in self._workers:
            worker.stop()


class ConnectWorker:
    """A worker process. Its offsets stay when it is stopped or killed and started again."""

    def __init__(
        self, folder: Path, config: Mapping[str, object], connectors: tuple[Mapping[str, object], ...]
    ) -> None:
        self._events_file = folder / "said.jsonl"
        self._log = folder / "worker.log"
        self._first_line = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._files = [_written(folder / "worker.json", config)]
        for number, connector in enumerate(connectors):
            self._files.append(_written(folder / f"connector-{number}.json", connector))

    def start(self) -> None:
        """Start the worker and its connectors. Raises BrokerError if they do not start."""
        self._first_line = len(self._lines())
        with self._events_file.open("ab") as events, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RUN.format(path=sys.path), "standalone", *map(str, self._files)],
                stdin=subprocess.PIPE,
                stdout=events,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + SECONDS_MAX
        while not self.events():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise BrokerError(f"the Connect worker did not start:\n{self.log}")
            time.sleep(LOOK_AGAIN_S)

    def events(self) -> list[dict[str, Any]]:
        """Return the events since the last start: "started", "status", "stopped" (docs/connect.md)."""
        return [json.loads(line) for line in self._lines()[self._first_line :]]

    @property
    def connectors(self) -> list[dict[str, Any]]:
        """The last report on each connector and its tasks, with their states."""
        reports = [event["connectors"] for event in self.events() if event["event"] != "started"]
        return reports[-1] if reports else []

    @property
    def log(self) -> str:
        """The text that the worker wrote to stderr."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def stop(self) -> None:
        """Stop the worker by SIGTERM, so that it flushes and commits."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._forget(self._process)

    def kill(self) -> None:
        """Kill the worker with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._forget(self._process)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        assert process.stdin is not None
        process.stdin.close()
        self._process = None

    def _lines(self) -> list[str]:
        """Return the whole lines; the last line may be incomplete."""
        text = self._events_file.read_text() if self._events_file.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()


def _written(path: Path, settings: Mapping[str, object]) -> Path:
    path.write_text(json.dumps({key: str(value) for key, value in settings.items()}))
    return path
