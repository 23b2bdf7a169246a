"""An instance of an application as a process: ``millstream streams run``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.faults.streams.summing import PREFIX
from tests.support import millstream_command

ROOT = Path(__file__).parents[3]
SETTINGS: Mapping[str, object] = {
    "processing.guarantee": "exactly_once_v2",
    "session.timeout.ms": 3000,
    "heartbeat.interval.ms": 500,
    "poll.ms": 20,
}


class Instance:
    """Runs from the start on. `told` counts the states it went through; the rest is its last status. Stderr
    goes to ``<folder>.log``.
    """

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        *,
        prefix: str = PREFIX,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.states: Counter[str] = Counter()
        self.records_in = 0
        self.tasks: list[str] = []
        self.standby_tasks: list[str] = []
        self._log = folder.with_suffix(".log")
        all_settings = {**SETTINGS, "state.dir": folder, "client.id": folder.name, **(settings or {})}
        overrides = [part for key, value in all_settings.items() for part in ("--override", f"{key}={value}")]
        command = millstream_command.command(
            *("streams", "run", "tests.faults.streams.summing:topology"),
            *("--bootstrap-server", bootstrap, "--application-id", f"{prefix}-app"),
            *("--status-interval", "0.2", *overrides),
        )
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env={**os.environ, "SUMMING_PREFIX": prefix, **(environment or {})},
            )
        self._reader = threading.Thread(target=self._read, name=f"status of {folder.name}")
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            status = json.loads(line)
            self.states[status["state"]] += 1
            self.records_in = status["records_in"]
            self.tasks, self.standby_tasks = status["tasks"], status["standby_tasks"]

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """Errors that all processes of this folder have printed."""
        return self._log.read_text()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self.wait()

    def wait(self, seconds: float = 100.0) -> int:
        """Wait until it is gone; its exit status."""
        status = self._process.wait(seconds)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status
