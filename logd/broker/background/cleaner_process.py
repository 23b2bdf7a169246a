"""The child process that compacts logs, seen from the loop: start it, give it a task, hear its reports."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kafka_client.errors import MillstreamError
from logd.storage.cleaner.messages import LENGTH, Cancel, Cleaned, Failed, Report, frame

if TYPE_CHECKING:
    from logd.storage.cleaner.messages import Done, Order, Task

STOP_SECONDS = 5.0
"""How long a cleaner that was told to end may take before it is killed."""
UNREAD_BYTES = 64 * 1024
logger = logging.getLogger("logd.broker")

PACKAGE_DIRECTORY = Path(__file__).parent.parent.parent


class CleanerDied(MillstreamError):
    """The process ended in the midst of a task; `status` is its exit status, negative for a signal."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return f"the cleaner process ended with status {self.status}"


class CleanerProcess:
    """Started with its first task, and again after it died. One task at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._decoder: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)

    @property
    def pid(self) -> int | None:
        """The process's id while it is running."""
        return None if self._process is None else self._process.pid

    async def clean(self, task: Task, on_group: Callable[[Cleaned], Awaitable[bool]]) -> Done | Failed:
        """Have a task carried out; `on_group` takes every group, and says False to have the rest left off.

        Raises CleanerDied, and OSError if no process can be started.
        """
        process = await self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            _send(process.stdin, task)
            await process.stdin.drain()
            while True:
                report = await self._report(process.stdout)
                if not isinstance(report, Cleaned):
                    return report
                if not await on_group(report):
                    _send(process.stdin, Cancel())
                    while isinstance(await self._report(process.stdout), Cleaned):
                        pass
                    return Failed(reason="cancelled", message="")
        except (asyncio.IncompleteReadError, ConnectionError):
            self._process = None
            raise CleanerDied(await process.wait()) from None

    def cancel(self) -> None:
        """Have the task that is under way left off; it ends as `Failed` then, if it was not done."""
        process = self._process
        if process is not None and process.returncode is None and process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                _send(process.stdin, Cancel())

    async def _report(self, stdout: asyncio.StreamReader) -> Report:
        size = LENGTH.unpack(await stdout.readexactly(LENGTH.size))[0]
        return self._decoder.decode(await stdout.readexactly(size))

    async def stop(self) -> None:
        """End the process: whatever it is doing is dropped."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        while await process.stdout.read(UNREAD_BYTES):
            pass  # read its last reports to their end, which closes the pipe

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is not None:
            # It died while it had nothing to do.
            logger.error("%s; it is started again", CleanerDied(self._process.returncode))
            self._process = None
        if self._process is None:
            starting = asyncio.ensure_future(_start())
            try:
                self._process = await asyncio.shield(starting)
            except asyncio.CancelledError:
                self._process = await starting  # a process that is only half started could not be stopped
                raise
        return self._process


async def _start() -> asyncio.subprocess.Process:
    paths = [str(PACKAGE_DIRECTORY), os.environ.get("PYTHONPATH", "")]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # modules come from where ours do, not from the working directory
        "-m",
        "logd.storage.cleaner",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        # A terminal's Ctrl-C is for the broker, which ends the cleaner.
        start_new_session=True,
    )


def _send(stdin: asyncio.StreamWriter, order: Order) -> None:
    """Send an order to the process. Raises ConnectionError if it has ended (uvloop: RuntimeError)."""
    try:
        stdin.write(frame(order))
    except RuntimeError as error:
        raise ConnectionResetError(str(error)) from None
