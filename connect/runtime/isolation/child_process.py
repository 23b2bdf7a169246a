"""ChildProcess: a task's process as its worker sees it: its start, its messages, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Self

from connect.errors import ConnectError
from connect.runtime.isolation.messages import LENGTH_BYTES, FromTask, ToTask, encoded, from_task, length

_MODULE = "connect.runtime.isolation.task_process"
_ROOT = str(Path(__file__).resolve().parents[3])
"""The folder that has the package `connect`."""
_UNREAD_BYTES_MAX = 1 << 20
_END_SECONDS = 2.0
"""How long a process may take to end once its socket is closed."""


class ChildProcess:
    """A process. Start it with `ChildProcess.start`, and `close` it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, name: str) -> Self:
        """Start a process that waits for its spec; `name` is shown in the list of processes."""
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), _ROOT]))
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()), name),
                    stdin=subprocess.DEVNULL,
                    # The worker's own stdout has its events, a line of JSON each.
                    stdout=sys.__stderr__ or subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, "PYTHONPATH": path},
                    # Ctrl-C at a terminal is for the worker, which then stops its tasks.
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, message: ToTask) -> None:
        """Send a message. A process that does not read is killed, rather than to let messages pile up."""
        self._writer.write(encoded(message))
        if self._writer.transport.get_write_buffer_size() > _UNREAD_BYTES_MAX:
            self.kill()

    async def send_patiently(self, message: ToTask) -> None:
        """Send a message, and return once the process has room for another."""
        try:
            self._writer.write(encoded(message))
            await self._writer.drain()
        except ConnectionError:
            pass  # its end is noticed where messages are read

    async def messages(self) -> AsyncGenerator[FromTask, None]:
        """Yield messages until the process closes its end. Raises ConnectError for one that is none."""
        while True:
            try:
                size = length(await self._reader.readexactly(LENGTH_BYTES))
                body = await self._reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            yield from_task(body)

    def kill(self) -> None:
        """Kill the process and all those that it has started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    async def ended(self) -> str:
        """Wait for the end of a process whose messages are over, and return how it ended."""
        try:
            async with asyncio.timeout(_END_SECONDS):
                code = await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
            return "closed its socket and did not end, and was killed"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            name = f" ({signal.Signals(-code).name})"
        except ValueError:
            name = ""
        return f"ended by signal {-code}{name}"

    async def close(self) -> None:
        """Kill what still runs, and close the socket."""
        if self._process.returncode is None:
            self.kill()
        self._writer.close()
        await self._process.wait()


def unstartable(name: str, error: OSError) -> ConnectError:
    """Return the error of a process that the system does not start."""
    return ConnectError(f"the process of task {name} cannot be started: {error}")
