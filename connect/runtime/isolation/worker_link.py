"""WorkerLink: the end of the socket in a task's process.

Threads read and write. So this process notices the end of its worker while a plugin holds up the loop.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Callable

from connect.errors import ConnectError
from connect.runtime.isolation.messages import (
    LENGTH_BYTES,
    FromTask,
    LogLine,
    Report,
    ToTask,
    encoded,
    length,
    to_task,
)

ORPHANED = 71
"""Exit code of a process whose worker has ended."""
_MESSAGES_MAX = 10_000
_LOG_LINES_MAX = 1_000
_LOG_TEXT_MAX = 64 << 10


class WorkerLink:
    """The connection to the worker. Call `receive` for the first message, then `start`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._changed = threading.Condition()
        self._messages: deque[bytes] = deque()
        self._log_lines: deque[bytes] = deque()
        self._dropped = 0
        self._report: bytes | None = None
        self._is_idle = True

    def receive(self) -> ToTask:
        """Return the next message. Raises EOFError if the worker has ended."""
        return to_task(self._read(length(self._read(LENGTH_BYTES))))

    def start(self, take: Callable[[ToTask], None]) -> None:
        """Read and write in threads from now on; `take` is called with each message in one of them."""
        threading.Thread(target=self._read_all, args=(take,), name="from worker", daemon=True).start()
        threading.Thread(target=self._write_all, name="to worker", daemon=True).start()

    def send(self, message: FromTask) -> None:
        """Send a message. Raises ConnectError if too many wait, or it is too long."""
        body = encoded(message)
        with self._changed:
            if len(self._messages) >= _MESSAGES_MAX:
                raise ConnectError(f"the worker has not read {_MESSAGES_MAX} messages of this task")
            self._messages.append(body)
            self._changed.notify_all()

    def report(self, report: Report) -> None:
        """Send a report, unless a newer one comes before it is written."""
        body = encoded(report)
        with self._changed:
            self._report = body
            self._changed.notify_all()

    def log(self, line: LogLine) -> None:
        """Send a log line, or count it as dropped if too many wait."""
        body = encoded(line)
        with self._changed:
            if len(self._log_lines) >= _LOG_LINES_MAX:
                self._dropped += 1
                return
            self._log_lines.append(body)
            self._changed.notify_all()

    def flush(self, seconds: float) -> None:
        """Wait until everything is written, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_idle and not self._is_waiting(), seconds)

    def _is_waiting(self) -> bool:
        return bool(self._messages or self._log_lines or self._report)

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def _read_all(self, take: Callable[[ToTask], None]) -> None:
        try:
            while True:
                take(self.receive())
        except BaseException:
            # The worker has ended: another one may run this task already, so nothing may be written any more.
            os._exit(ORPHANED)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._is_idle = True
                self._changed.notify_all()
                self._changed.wait_for(self._is_waiting)
                self._is_idle = False
                data = self._take_waiting()
            try:
                self._socket.sendall(data)
            except OSError:
                os._exit(ORPHANED)

    def _take_waiting(self) -> bytes:
        """Return what waits. A report goes last: the worker reads nothing after the last one."""
        parts = [*self._log_lines, *self._messages, self._report or b""]
        if self._dropped:
            text = f"{self._dropped} log lines were dropped"
            parts.insert(0, encoded(LogLine("connect.runtime.isolation", logging.WARNING, text, 0.0)))
        self._messages.clear()
        self._log_lines.clear()
        self._report, self._dropped = None, 0
        return b"".join(parts)


class LogToWorker(logging.Handler):
    """A handler that sends log lines to the worker, each with the task's context as Kafka writes it."""

    def __init__(self, link: WorkerLink, context: str) -> None:
        super().__init__()
        self._link = link
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line; one that cannot be formatted goes to stderr."""
        try:
            text = f"{self._context}{self.format(record)}"
            text = text.encode(errors="replace").decode()[:_LOG_TEXT_MAX]
            self._link.log(LogLine(record.name, record.levelno, text, record.created))
        except Exception:
            self.handleError(record)
