"""A worker's process as its driver sees it: what it told, and the signals it is sent."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from tests.faults.exactly_once.names import PATIENCE_MS
from tests.support.waiting import until

PATIENCE = PATIENCE_MS / 1000


class WorkerProcess:
    """Runs from the start on; `told` counts its steps, `last` is the one it told last."""

    def __init__(self, bootstrap: str, name: str, seed: int, log: Path) -> None:
        self.name = name
        self.steps: Counter[str] = Counter()
        self.records = 0
        """Records of the transactions that it reported as committed."""
        self.last = ""
        self._log = log
        command = [sys.executable, "-m", "tests.faults.exactly_once.worker", bootstrap, name, str(seed)]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        self._reader = threading.Thread(target=self._read, name=f"steps of {name}")
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            step, _, count = line.strip().partition(" ")
            self.records += int(count or 0)
            self.steps[step] += 1
            self.last = step

    @property
    def status(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._process.poll()

    @property
    def log(self) -> str:
        """Errors that all processes of this name have printed."""
        return self._log.read_text()

    async def until_told(self, step: str, more_than: int = 0) -> None:
        """Wait until it has told a step more often than so."""
        await until(lambda: self.steps[step] > more_than or self.status is not None, PATIENCE)
        assert self.steps[step] > more_than, f"{self.name} ended with status {self.status}: {self.log}"

    def stop(self) -> None:
        """SIGSTOP: it does nothing, and does not know it."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self.wait()

    def leave(self) -> None:
        """SIGTERM; `ended` tells how it went."""
        self._process.terminate()

    async def ended(self) -> int:
        """Its exit status, once it has ended by itself."""
        return await asyncio.to_thread(self.wait)

    def wait(self) -> int:
        """Wait until it is gone; its exit status."""
        status = self._process.wait(PATIENCE)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status
