"""The child process of `driver`: holds the Spark session, answers calls, ends with its parent."""

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
import threading
import traceback
from pathlib import Path
from typing import Any

import msgspec
from py4j.protocol import Py4JNetworkError

from plugins.spark.error_types import error_type
from plugins.spark.settings import SparkSettings

JVM_EXIT_SECONDS = 8.0
JVM_NOTICE_SECONDS = 2.0
JVM_DIED = 3
CALLS = ("version", "table_columns", "write", "sql")


class DriverProcess:
    """The session, once it is up, and the threads that serve calls on it."""

    def __init__(self, listener: socket.socket, folder: Path) -> None:
        self._listener = listener
        self._folder = folder
        self._started = threading.Event()
        self._jvm: subprocess.Popen[bytes] | None = None
        self._session: Any = None
        self._failure: str | None = None
        self._ending = False
        self._waiting = 0
        """Calls that came before Spark was up."""

    def run(self, settings: SparkSettings) -> None:
        """Serve from now on, start Spark, and stay for as long as its JVM lives. Does not return."""
        threading.Thread(target=self._watch_parent, daemon=True).start()
        threading.Thread(target=self._accept, daemon=True).start()
        try:
            from plugins.spark.session import build_session

            self._session = build_session(settings, self._folder)
            self._jvm = self._session.sparkContext._gateway.proc
        except Exception as e:
            traceback.print_exc()
            self._failure = f"Spark did not start: {e}"
        self._started.set()
        if self._jvm is not None:
            self._warm_up()
            self._jvm.wait()
            if not self._ending:
                os._exit(JVM_DIED)
        threading.Event().wait()

    def _warm_up(self) -> None:
        """Run a first small job, unless a call is waiting for Spark already."""
        if self._waiting:
            return
        try:
            from plugins.spark import jobs

            jobs.warm_up(self._session, self._folder)
        except Exception:
            traceback.print_exc()

    def _watch_parent(self) -> None:
        """End when standard input does: the parent closed it, or is gone."""
        sys.stdin.buffer.read()
        self._ending = True
        if self._jvm is not None and self._jvm.stdin is not None:
            self._jvm.stdin.close()
            try:
                self._jvm.wait(JVM_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._jvm.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        # The group is ours alone: this process, and a JVM that is just starting.
        os.killpg(0, signal.SIGKILL)

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                answer = json.dumps(self._answer(json.loads(line)), default=_as_json)
                connection.sendall(answer.encode() + b"\n")

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if not self._started.is_set() and request["call"] != "version":
            self._waiting += 1
        self._started.wait()
        if self._failure is not None:
            return {"error": self._failure}
        try:
            if request["call"] not in CALLS:
                raise ValueError(f"no call named {request['call']}")
            from plugins.spark import jobs

            return {"result": getattr(jobs, request["call"])(self._session, **request["arguments"])}
        except Exception as e:
            traceback.print_exc()
            self._exit_if_jvm_is_gone(e)
            return {"error": without_stacks(f"{type(e).__name__}: {e}"), **error_type(e)}

    def _exit_if_jvm_is_gone(self, error: Exception) -> None:
        """Exit without a response if the JVM died, so that the parent starts another driver."""
        if self._jvm is not None and isinstance(error, (Py4JNetworkError, OSError)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._jvm.wait(JVM_NOTICE_SECONDS)
                if not self._ending:
                    os._exit(JVM_DIED)


_PYTHON_STACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+")


def without_stacks(message: str) -> str:
    """Return Spark's message without Java's and Python's stack traces, which remain in the driver's log."""
    return _PYTHON_STACK.sub("", message.partition("\n\tat ")[0])


def _as_json(value: Any) -> Any:
    """Return a value that JSON lacks as a string: bytes as UTF-8 or else hex, others by `str`."""
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    return str(value)


def main() -> None:
    """Run a driver process. `driver` starts it with `{"settings": …, "folder": …, "listener": fd}`."""
    arguments = json.loads(sys.argv[1])
    listener = socket.socket(fileno=arguments["listener"])
    process = DriverProcess(listener, Path(arguments["folder"]))
    process.run(msgspec.convert(arguments["settings"], SparkSettings))


if __name__ == "__main__":
    main()
