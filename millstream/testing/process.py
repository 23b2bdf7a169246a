"""A test's broker in a process of its own, seen from the test; `child` is its inside."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.testing.errors import BrokerError

SECONDS_MAX = 100.0
"""How long a start or a command may take; on a busy machine too only a hang comes so far."""
TOLD_LINES = 20
"""Of the output, when the broker has ended."""
_RUN = "import sys; sys.path[:] = {path!r}; from millstream.testing.child import main; main()"


class ProcessHost:
    """Data and output (`broker.log`) are in `folder`, which is removed in the end unless `keeps`."""

    in_process = False

    def __init__(self, folder: Path, config: Mapping[str, object], *, keeps: bool) -> None:
        self.folder = folder
        self.port = 0
        self._config = config
        self._keeps = keeps
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._asking = threading.Lock()
        self._paused = False

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the broker has said."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        """Start and wait until it serves. BrokerError."""
        config = dict(self._config)
        if self.port:
            config.setdefault("listeners", f"PLAINTEXT://127.0.0.1:{self.port}")
        self.kill()  # nothing, unless it has ended by itself
        self._received = b""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RUN.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        texts = {key: _plain(value) for key, value in config.items()}
        begun = {"folder": str(self.folder), "config": texts, "keeps": self._keeps}
        try:
            self._send(self._process, begun)
            # While it starts: what a test will want of us next takes as long to import.
            importlib.import_module("millstream.testing.client")
            self.port = self._answer(self._process)
        except BrokerError:
            self.stop()
            raise

    def stop(self) -> None:
        """End it; without `keeps` its folder goes with it. Once more does nothing."""
        if self._process is not None:
            self._end(self._process)
        if not self._keeps:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self.resume()
        self._process = None
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def kill(self) -> None:
        """SIGKILL; the folder stays, and `start` goes on with it."""
        if self._process is not None:
            self._process.kill()
            self._end(self._process)

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing is answered."""
        self._running("paused").send_signal(signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        """SIGCONT."""
        if self._paused and self._process is not None:
            self._process.send_signal(signal.SIGCONT)
        self._paused = False

    def ask(self, command: str, **arguments: object) -> Any:
        """Give it a command, and wait for the result. BrokerError."""
        process = self._running(f"asked to {command}")
        if self._paused:
            raise BrokerError(f"the broker is paused and cannot {command}: call resume() first")
        with self._asking:
            self._send(process, {"do": command, "with": arguments})
            return self._answer(process)

    def _running(self, what: str) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError(f"the broker does not run and cannot be {what}: call start() first")
        return self._process

    def _send(self, process: subprocess.Popen[bytes], message: Mapping[str, object]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise self._ended(process) from None

    def _answer(self, process: subprocess.Popen[bytes]) -> Any:
        answer = json.loads(self._line(process))
        if "error" in answer:
            raise BrokerError(answer["error"])
        return answer["result"]

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + SECONDS_MAX
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not selector.select(deadline - time.monotonic()):
                    process.kill()
                    raise BrokerError(f"the broker did not answer in {SECONDS_MAX:.0f} s and was killed")
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    raise self._ended(process)
                self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _ended(self, process: subprocess.Popen[bytes]) -> BrokerError:
        status = process.wait()
        told = "\n".join(self.log.splitlines()[-TOLD_LINES:])
        return BrokerError(f"the broker has ended with status {status}:\n{told}")


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | str) else str(value)
