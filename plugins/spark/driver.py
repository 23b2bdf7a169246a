"""The Spark driver in a process of its own, started again when it dies.

One JVM per Python process is all PySpark can do, and after that JVM dies the process gets no other: so the
session lives in a child process, and calls go over a Unix socket, one JSON line each way:

    {"call": "sql", "arguments": {…}}   →   {"result": …}  or  {"error": "…", "type": "…"}

The parent opens the listening socket and hands it down, so that a call may be made at once and waits for
Spark to be up. The child ends when its standard input does, that is, with its parent, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import msgspec

from kafka_client import errors
from kafka_client.errors import BROKER_AWAY
from plugins.spark.calls import WriteRequest, WriteResult
from plugins.spark.environment import worker_environment
from plugins.spark.errors import DriverDied, JobBrokenOff, JobFailed
from plugins.spark.settings import SparkSettings

STOP_SECONDS = 10.0
LOG_LINES_QUOTED = 25
_AWAY = [
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, BROKER_AWAY)
]
_BROKEN_OFF = re.compile(
    rf"Python worker exited unexpectedly|\bkafka_client\.errors\.(?:{'|'.join(_AWAY)})\b"
)
"""What Spark says of a task that deserves another try; with a local master it gives it none."""


class SparkDriver:
    """Calls into a driver process. Methods block, may be called from any thread, and start the process.

    Use it as a context manager, or end with `close`. `start` alone begins Spark's start-up in the background.
    """

    def __init__(self, settings: SparkSettings | None = None) -> None:
        self.settings = settings or SparkSettings()
        self.starts = 0
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._closed = False

    def start(self) -> Self:
        """Begin to start Spark and return at once; later calls wait until it is up."""
        self._running()
        return self

    @property
    def pid(self) -> int | None:
        """The driver process, None while there is none."""
        child = self._child
        return child.process.pid if child is not None and child.alive else None

    @property
    def socket_path(self) -> Path | None:
        """Where the driver process answers calls, None while there is none."""
        return self._child.socket_path if self._child is not None else None

    def wait_ready(self) -> str:
        """Wait until Spark is up; returns its version."""
        return str(self.call("version"))

    def write(self, request: WriteRequest) -> WriteResult:
        """Have Spark read offset ranges and write them as Parquet files into a new folder."""
        return msgspec.convert(self.call("write", request=msgspec.to_builtins(request)), WriteResult)

    def sql(
        self, query: str, tables: Mapping[str, str] | None = None, *, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Rows of a query, as dicts; at most `limit`. Dates, times and decimals come as strings.

        `tables`: view name -> folder of a table written by the sink. Besides each view `t` there is
        `t_latest`: the row with the highest offset of each key, what a topic of updates means.
        """
        rows = self.call("sql", query=query, tables=dict(tables or {}), limit=limit)
        return list(rows)

    def call(self, call: str, **arguments: Any) -> Any:
        """One call. Raises JobFailed or JobBrokenOff with Spark's words, DriverDied without an answer."""
        return self._running().call(call, arguments)

    def close(self) -> None:
        """End the driver process and its JVM."""
        with self._lock:
            child, self._child, self._closed = self._child, None, True
        if child is not None:
            child.stop()

    def _running(self) -> _Child:
        with self._lock:
            if self._closed:
                raise DriverDied("the Spark driver was closed")
            if self._child is None or not self._child.alive:
                if self._child is not None:
                    self._child.stop()
                self._child = _Child(self.settings)
                self.starts += 1
            return self._child

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class _Child:
    """One driver process, from start to end."""

    def __init__(self, settings: SparkSettings) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-spark-"))
        self.socket_path = Path(settings.socket or self._folder / "driver")
        self.log_path = Path(settings.log_file or self._folder / "driver.log")
        with contextlib.suppress(FileNotFoundError):
            self.socket_path.unlink()
        with socket.socket(socket.AF_UNIX) as listener, open(self.log_path, "ab") as log:
            listener.bind(str(self.socket_path))
            os.chmod(self.socket_path, 0o600)
            listener.listen(16)
            arguments = {
                "settings": asdict(settings),
                "folder": str(self._folder),
                "listener": listener.fileno(),
            }
            self.process = subprocess.Popen(
                [sys.executable, "-m", "plugins.spark.driver_process", json.dumps(arguments)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listener.fileno()],
                env=os.environ | worker_environment(),
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def call(self, call: str, arguments: Mapping[str, Any]) -> Any:
        try:
            return call_driver(self.socket_path, call, arguments)
        except DriverDied:
            self._wait_or_kill()
            raise DriverDied(f"the Spark driver process ended during {call}\n{self._last_words()}") from None

    def stop(self) -> None:
        """End the process, gently first; its JVM goes with it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._wait_or_kill()
        with contextlib.suppress(FileNotFoundError):
            self.socket_path.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_or_kill(self) -> None:
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # A JVM that outlives its driver process for a moment, or was just starting, is in its group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _last_words(self) -> str:
        try:
            lines: Sequence[str] = self.log_path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-LOG_LINES_QUOTED:])


def call_driver(path: Path | str, call: str, arguments: Mapping[str, Any]) -> Any:
    """One call over a driver's socket; also for other processes, by the setting `driver.socket`."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(json.dumps({"call": call, "arguments": arguments}).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
    except OSError as e:
        raise DriverDied(f"no Spark driver answers at {path}: {e}") from None
    if not line.endswith(b"\n"):
        raise DriverDied(f"the Spark driver at {path} ended during {call}")
    answer = json.loads(line)
    if "error" in answer:
        error = answer["error"]
        raise (JobBrokenOff if _BROKEN_OFF.search(error) else JobFailed)(error)
    return answer["result"]


_shared: dict[SparkSettings, tuple[SparkDriver, int]] = {}
_shared_lock = threading.Lock()


def acquire_driver(settings: SparkSettings) -> SparkDriver:
    """The process's one driver for these settings, starting; connectors of a worker share it."""
    with _shared_lock:
        driver, users = _shared.get(settings) or (SparkDriver(settings), 0)
        _shared[settings] = (driver, users + 1)
    return driver.start()


def release_driver(driver: SparkDriver) -> None:
    """Give back an acquired driver; the last one closes it."""
    with _shared_lock:
        _, users = _shared[driver.settings]
        if users > 1:
            _shared[driver.settings] = (driver, users - 1)
            return
        del _shared[driver.settings]
    driver.close()
