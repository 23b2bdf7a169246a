"""The child process of `driver`: holds the Spark session, answers calls, ends with its parent."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import msgspec

from plugins.spark.settings import SparkSettings

JVM_EXIT_SECONDS = 8.0
CALLS = ("version", "write", "sql")


class DriverProcess:
    """The session, once it is up, and the threads that serve calls on it."""

    def __init__(self, listener: socket.socket, folder: Path) -> None:
        self._listener = listener
        self._folder = folder
        self._started = threading.Event()
        self._jvm: subprocess.Popen[bytes] | None = None
        self._session: Any = None
        self._failure: str | None = None

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
        if self._jvm is None:
            threading.Event().wait()
            return
        self._jvm.wait()
        os._exit(3)

    def _watch_parent(self) -> None:
        """End when standard input does: the parent closed it, or is gone."""
        sys.stdin.buffer.read()
        if self._jvm is not None and self._jvm.stdin is not None:
            self._jvm.stdin.close()
            try:
                self._jvm.wait(JVM_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._jvm.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(0)

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                answer = json.dumps(self._answer(json.loads(line)), default=_as_json)
                connection.sendall(answer.encode() + b"\n")

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._started.wait()
        if self._failure is not None:
            return {"error": self._failure}
        try:
            if asked["call"] not in CALLS:
                raise ValueError(f"no call named {asked['call']}")
            from plugins.spark import jobs

            return {"result": getattr(jobs, asked["call"])(self._session, **asked["arguments"])}
        except Exception as e:
            traceback.print_exc()
            return {"error": f"{type(e).__name__}: {e}"}


def _as_json(value: Any) -> Any:
    """Binary as text where it is text, as hex where not; dates, times and decimals as they print."""
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    return str(value)


def main() -> None:
    """Started by `driver` only, with `{"settings": …, "folder": …, "listener": fd}` as its argument."""
    arguments = json.loads(sys.argv[1])
    listener = socket.socket(fileno=arguments["listener"])
    process = DriverProcess(listener, Path(arguments["folder"]))
    process.run(msgspec.convert(arguments["settings"], SparkSettings))


if __name__ == "__main__":
    main()
