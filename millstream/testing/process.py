"""A test's broker in a process of its own, seen from the test; `child` is its inside."""

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
    """Data and output (`broker.log`) are in `folder`, which is removed in the end unless `keeps`.

    `config` holds from the next start on. `name` is what errors call it.
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
        """Whether the process lives."""
        return self._child.is_running

    @property
    def is_paused(self) -> bool:
        """Whether it stands still."""
        return self._paused

    @property
    def log(self) -> str:
        """What the broker has said."""
        return self._child.log

    def start(self) -> None:
        """Start and wait until it serves. BrokerError."""
        self.spawn()
        # While it starts: what a test will want of us next takes as long to import.
        importlib.import_module("millstream.testing.client")
        self.wait()

    def spawn(self) -> None:
        """Begin a start; `wait` comes next. BrokerError."""
        config = dict(self.config)
        if self.port:
            config.setdefault("listeners", f"PLAINTEXT://127.0.0.1:{self.port}")
        texts = {key: _plain(value) for key, value in config.items()}
        self.kill()  # nothing, unless it has ended by itself
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._child.spawn({"folder": str(self.folder), "config": texts, "keeps": self._keeps})
        except BrokerError:
            self.stop()
            raise

    def wait(self) -> None:
        """Wait until it serves. BrokerError."""
        try:
            self.port = self._child.answer()
        except BrokerError:
            self.stop()
            raise

    def stop(self) -> None:
        """End it; without `keeps` its folder goes with it. Once more does nothing."""
        self.resume()
        self._child.end()
        if not self._keeps:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """SIGKILL; the folder stays, and `start` goes on with it."""
        self._child.kill()
        self._paused = False

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing is answered."""
        self._child.signal(signal.SIGSTOP, "paused")
        self._paused = True

    def resume(self) -> None:
        """SIGCONT."""
        if self._paused:
            self._child.signal(signal.SIGCONT, "resumed")
        self._paused = False

    def ask(self, command: str, **arguments: object) -> Any:
        """Give it a command, and wait for the result. BrokerError."""
        if self._paused:
            raise BrokerError(f"{self._name} is paused and cannot {command}: call resume() first")
        return self._child.ask({"do": command, "with": arguments}, f"asked to {command}")


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | str) else str(value)
