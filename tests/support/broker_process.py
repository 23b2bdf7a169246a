"""A broker as a process of its own: what `LogdProcess` and `ApacheKafka` have in common."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_SECONDS = 100.0


class BrokerProcess(ABC):
    """Started by `start`, or as a context manager, which kills it in the end. Its output goes to `output`."""

    def __init__(self, folder: Path, output: str) -> None:
        self.folder = folder
        self.host = "127.0.0.1"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / output
        folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def start(self) -> Self:
        """Start and wait until it serves; AssertionError with its output when it does not get there."""

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients."""
        return f"{self.host}:{self.port}"

    @property
    def log(self) -> str:
        """All output of all starts."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def stop(self, seconds: float = STOP_SECONDS) -> int:
        """Stop cleanly by SIGTERM; the exit status."""
        self.terminate()
        return self.wait(seconds)

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        assert self._process is not None
        if self.is_running:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self.wait()

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait until it ends by itself; the exit status."""
        assert self._process is not None
        return self._process.wait(seconds)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
