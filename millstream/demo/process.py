"""A child process of the demo: started, watched, started again when it dies, stopped cleanly.

The demo stands in for a service manager: a part that is killed comes back with the same command
and the same folder, a bounded number of times, and every restart is told.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kafka_client.errors import MillstreamError
from millstream.with_parent import with_parent

RESTARTS_MAX = 5
STOP_SECONDS = 20.0


class PartFailed(MillstreamError):
    """A part of the demo cannot be kept running; the text names it and its log file."""


def python(*args: str) -> list[str]:
    """Return the command line that runs a module with this interpreter."""
    return [sys.executable, *args]


class Part:
    """A long-running child process. Its output goes to `log`, and `on_line` receives each line.

    After `start`, `ready` resolves with the first line that `is_ready` accepts. A process that ends on its
    own with status 0 is done; after any other end it is started again.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        is_ready: Callable[[str], bool] = lambda line: True,
        on_line: Callable[[str], None] | None = None,
        on_restart: Callable[[str, int], None] | None = None,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self.restarts = 0
        self.pid = -1
        self._is_ready = is_ready
        self._on_line = on_line
        self._on_restart = on_restart
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False
        self._may_run = asyncio.Event()
        self._may_run.set()
        self._watch: asyncio.Task[None] | None = None
        self.ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        """Start the process and its watcher; await `ready` next."""
        await self._spawn()
        self._watch = asyncio.create_task(self._run(), name=f"watch {self.name}")

    async def _spawn(self) -> None:
        with self.log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                # If the demo itself is killed outright, nothing it started may stay behind.
                *with_parent(self.command, signal.SIGTERM),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self.pid = self._process.pid

    async def _run(self) -> None:
        try:
            while True:
                status = await self._follow()
                if status != 0:
                    await self._may_run.wait()
                if self._stopping or status == 0:
                    return
                self.restarts += 1
                if self.restarts > RESTARTS_MAX:
                    raise PartFailed(
                        f"{self.name} ended {self.restarts} times, last with status {status}: see {self.log}"
                    )
                if self._on_restart is not None:
                    self._on_restart(self.name, status)
                await self._spawn()
        except PartFailed as failure:
            self._give_up(failure)
            raise
        finally:
            self._give_up(PartFailed(f"{self.name} ended before it was ready: see {self.log}"))

    def _give_up(self, failure: PartFailed) -> None:
        if not self.ready.done():
            self.ready.set_exception(failure)
            self.ready.exception()  # nobody has to await `ready`

    async def _follow(self) -> int:
        process = self._process
        assert process is not None and process.stdout is not None
        with self.log.open("ab", buffering=0) as log:
            async for raw in process.stdout:
                log.write(raw)
                line = raw.decode(errors="replace").rstrip()
                if not self.ready.done() and self._is_ready(line):
                    self.ready.set_result(line)
                if self._on_line is not None:
                    self._on_line(line)
        return await process.wait()

    def kill(self) -> None:
        """Kill the process with SIGKILL. It is restarted only after `start_again`."""
        assert self._process is not None, "never started"
        self._may_run.clear()
        self._process.kill()

    def start_again(self) -> None:
        """Allow the restart of a killed process."""
        self._may_run.set()

    @property
    def is_done(self) -> bool:
        """True if the process has ended on its own, with status 0."""
        watch = self._watch
        return watch is not None and watch.done() and not watch.cancelled() and watch.exception() is None

    def check(self) -> None:
        """Raise the failure of this part, if there is one."""
        if self._watch is not None and self._watch.done() and not self._watch.cancelled():
            failure = self._watch.exception()
            if failure is not None:
                raise failure

    async def stop(self) -> None:
        """Stop the process by SIGTERM, or SIGKILL after 20 s. A second call does nothing."""
        self._stopping = True
        self._may_run.set()
        process, watch = self._process, self._watch
        if process is None or watch is None:
            return
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        done, _ = await asyncio.wait({watch}, timeout=STOP_SECONDS)
        if not done:
            process.kill()
            await asyncio.wait({watch})
        if not watch.cancelled():
            watch.exception()
