"""A process that serves a test run: a line of JSON in, a line out. It ends with the run, even a killed one.

The process runs the `main` of a module. `main` reads lines from standard input until its end, and answers
each with `{"result": ...}` or `{"error": "..."}`. The standard error is kept in a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.testing.errors import BrokerError
from millstream.testing.host import SECONDS_MAX

TOLD_LINES = 20
"""The number of output lines in the error of a process that has ended."""
_RUN = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"


class ChildProcess:
    """A child process. `name` is its name in errors ("the broker"); `log` is the file of its output."""

    def __init__(self, name: str, module: str, log: Path) -> None:
        self._name = name
        self._module = module
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._asking = threading.Lock()

    @property
    def is_running(self) -> bool:
        """True if the process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """The output of all starts."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def spawn(self, first_line: Mapping[str, object]) -> None:
        """Start the process and send its first line; `answer` waits for the response. Raises BrokerError."""
        self.kill()  # does nothing unless the process has ended on its own
        self._received = b""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RUN.format(path=sys.path, module=self._module)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        self._send(self._process, first_line)

    def ask(self, message: Mapping[str, object], purpose: str) -> Any:
        """Send a line and return the result.

        Raises BrokerError if the process reports an error or has ended.
        """
        process = self._running(purpose)
        with self._asking:
            self._send(process, message)
            return self._answer(process)

    def answer(self) -> Any:
        """Return the result of the line that `spawn` sent.

        Raises BrokerError if the process reports an error or has ended.
        """
        return self._answer(self._running("waited for"))

    def signal(self, number: signal.Signals, purpose: str) -> None:
        """Send a signal. Raises BrokerError if the process was not started."""
        self._running(purpose).send_signal(number)

    def end(self) -> None:
        """Close the input and wait until the process has ended. A second call does nothing."""
        if self._process is None:
            return
        process, self._process = self._process, None
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
        """Kill the process with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self.end()

    def _running(self, purpose: str) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError(f"{self._name} does not run and cannot be {purpose}: call start() first")
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
                    raise BrokerError(f"{self._name} did not answer in {SECONDS_MAX:.0f} s and was killed")
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    raise self._ended(process)
                self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _ended(self, process: subprocess.Popen[bytes]) -> BrokerError:
        status = process.wait()
        last_lines = "\n".join(self.log.splitlines()[-TOLD_LINES:])
        return BrokerError(f"{self._name} has ended with status {status}:\n{last_lines}")
