"""A test's broker in its own process, as seen by the test; `child` runs in the process."""

from __future__ import annotations

import importlib
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.testing.child_process import ChildProcess
from millstream.testing.errors import BrokerError


class ProcessHost:
    """A host that runs the broker in a process of its own.

    Data and output (`broker.log`) are in `folder`, which is removed at the end unless `keeps`. A changed
    `config` takes effect at the next start. `name` is the broker's name in errors.
    """

    in_process = False

    def __init__(
        self, folder: Path, config: Mapping[str, object], *, keeps: bool, name: str = "the broker"
    ) -> None:
        self.folder = folder
        self.port = 0
        self._name = name
        self.config = config
        self._keeps = keeps
        self._child = ChildProcess(name, "millstream.testing.child", folder / "broker.log")
        self._paused = False

    @property
    def is_running(self) -> bool:
        """True if the process is alive."""
        return self._child.is_running

    @property
    def is_paused(self) -> bool:
        """True if the process is paused."""
        return self._paused

    @property
    def log(self) -> str:
        """The broker's output."""
        return self._child.log

    def start(self) -> None:
        """Start the broker and wait until it serves. Raises BrokerError if it does not start."""
        self.spawn()
        # Import the client while the broker starts: both take about as long.
        importlib.import_module("millstream.testing.client")
        self.wait()

    def spawn(self) -> None:
        """Begin a start, which `wait` completes. Raises BrokerError if it fails."""
        config = dict(self.config)
        if self.port:
            config.setdefault("listeners", f"PLAINTEXT://127.0.0.1:{self.port}")
        texts = {key: _plain(value) for key, value in config.items()}
        self.kill()  # does nothing unless the process has ended on its own
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._child.spawn({"folder": str(self.folder), "config": texts, "keeps": self._keeps})
        except BrokerError:
            self.stop()
            raise

    def wait(self) -> None:
        """Wait until the broker serves. Raises BrokerError if it does not start."""
        try:
            self.port = self._child.answer()
        except BrokerError:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the broker and remove its folder unless `keeps`. A second call does nothing."""
        self.resume()
        self._child.end()
        if not self._keeps:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the process with SIGKILL; the folder stays for the next `start`."""
        self._child.kill()
        self._paused = False

    def pause(self) -> None:
        """Pause the process with SIGSTOP: connections stay open, nothing is answered."""
        self._child.signal(signal.SIGSTOP, "paused")
        self._paused = True

    def resume(self) -> None:
        """Resume the process with SIGCONT."""
        if self._paused:
            self._child.signal(signal.SIGCONT, "resumed")
        self._paused = False

    def ask(self, command: str, **arguments: object) -> Any:
        """Carry out a command and return the result.

        Raises BrokerError if it fails or the broker does not run.
        """
        if self._paused:
            raise BrokerError(f"{self._name} is paused and cannot {command}: call resume() first")
        return self._child.ask({"do": command, "with": arguments}, f"asked to {command}")


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | str) else str(value)
