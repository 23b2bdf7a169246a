"""The Spark driver in a process of its own, started again when it dies.

PySpark starts one JVM per Python process, and no other after that JVM dies. So the session is in a child
process, and calls go over a Unix socket, one JSON line each way:

    {"call": "sql", "arguments": {…}}   →   {"result": …}  or  {"error": "…", "type": "…"}

The parent opens the listening socket and passes it to the child. So a call may be made at once, and waits
until Spark has started. The child ends at the end of its standard input, so with its parent, however the
parent ends.
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
from plugins.spark.error_types import typed_error
from plugins.spark.errors import DriverDied, JobBrokenOff, JobFailed
from plugins.spark.settings import RowShape, SparkSettings

STOP_SECONDS = 10.0
LOG_LINES_QUOTED = 25
_AWAY = [
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, BROKER_AWAY)
]
_BROKEN_OFF = re.compile(
    rf"Python worker exited unexpectedly|\bkafka_client\.errors\.(?:{'|'.join(_AWAY)})\b"
)
"""Messages of Spark for task failures to retry; with a local master Spark does not retry them itself."""


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

    def table_columns(self, shape: RowShape) -> str:
        """Return the columns of a table of rows of this shape, in Spark's JSON form.

        Those of values that are inferred are not among them.
        """
        return str(self.call("table_columns", shape=msgspec.to_builtins(shape)))

    def sql(
        self, query: str, tables: Mapping[str, str] | None = None, *, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Return at most `limit` rows of a query, as dicts. Dates, times and decimals are strings.

        `tables` maps names of views to folders of tables written by the sink. For each view `t`, the view
        `t_latest` has the row with the highest offset of each key: the current state of a topic of updates.
        """
        rows = self.call("sql", query=query, tables=dict(tables or {}), limit=limit)
        return list(rows)

    def call(self, call: str, **arguments: Any) -> Any:
        """Call the driver.

        Raises JobFailed or JobBrokenOff with Spark's message, DriverDied without a response.
        """
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
    """A driver process."""

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
        """End the process with its JVM: close its standard input, and kill it if it has not ended in time."""
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
        # A JVM that is still running, or was just starting, is in the driver's process group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _last_words(self) -> str:
        try:
            lines: Sequence[str] = self.log_path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-LOG_LINES_QUOTED:])


def call_driver(path: Path | str, call: str, arguments: Mapping[str, Any]) -> Any:
    """Call a driver over its socket; other processes may do so by the setting `driver.socket`."""
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
        raise typed_error(answer) or (JobBrokenOff if _BROKEN_OFF.search(error) else JobFailed)(error)
    return answer["result"]


_shared: dict[SparkSettings, tuple[SparkDriver, int]] = {}
_shared_lock = threading.Lock()


def acquire_driver(settings: SparkSettings) -> SparkDriver:
    """Return the Spark driver of this process for these settings, and start it if it does not run.

    Connectors with equal settings share one driver. Call `release_driver` once per call of this function.
    """
    with _shared_lock:
        driver, users = _shared.get(settings) or (SparkDriver(settings), 0)
        _shared[settings] = (driver, users + 1)
    return driver.start()


def release_driver(driver: SparkDriver) -> None:
    """Release an acquired driver; the last release closes it."""
    with _shared_lock:
        _, users = _shared[driver.settings]
        if users > 1:
            _shared[driver.settings] = (driver, users - 1)
            return
        del _shared[driver.settings]
    driver.close()
