"""The supervisor of several brokers on one host: started at once, and stopped one after the other.

This process serves no requests. If one broker ends, it stops the others and ends too, so that a service
manager such as systemd starts all of them again. The brokers hold the other end of a pipe: its end-of-file
tells them that this process is gone, however it ended.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from logd.config.load import load_config
from logd.processes.shares import shares

PACKAGE_DIRECTORY: Final = Path(__file__).parents[2]
LINE_MAX: Final = 64 * 1024
"""Most bytes of a line that a broker prints; its lines are short."""
_READY: Final = re.compile(r"logd ready at (?P<address>\S+) \(node \d+, cluster (?P<cluster>[^,]+),")


def run(
    path: Path | None,
    overrides: Sequence[str],
    count: int,
    *,
    more: Sequence[str],
    pipe_variable: str,
    age: Callable[[], float],
) -> int:
    """Run ``count`` brokers until a signal, or until one has ended.

    ``more`` are further arguments of each broker's command. ``pipe_variable`` is the environment variable
    with a broker's end of the pipe; ``age`` returns the age of this process (s). Returns the exit status: 0
    if all have stopped on request, else 1, or the status of the broker that ended. Raises ConfigError.
    """
    every = shares(load_config(path, overrides).config, count)
    config_arguments = ["--config", str(path)] if path is not None else []
    commands = {
        share.node_id: [*config_arguments, *_overriding((*overrides, *share.overrides)), *more]
        for share in every
    }
    theirs, ours = os.pipe()
    try:
        return asyncio.run(_Brokers(commands, theirs, pipe_variable, age).run())
    finally:
        os.close(theirs)
        os.close(ours)


def _overriding(overrides: Sequence[str]) -> list[str]:
    return [argument for override in overrides for argument in ("--override", override)]


class _Brokers:
    """The processes of the brokers.

    ``commands`` are the arguments of `python -m logd` by node id; ``pipe`` is the end that brokers hold.
    """

    def __init__(
        self, commands: dict[int, list[str]], pipe: int, pipe_variable: str, age: Callable[[], float]
    ) -> None:
        self._commands = commands
        self._pipe = pipe
        self._pipe_variable = pipe_variable
        self._age = age
        self._stopping = asyncio.Event()
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._ready: dict[int, re.Match[str]] = {}

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
                loop.add_signal_handler(number, self._stop)
        for node_id, arguments in self._commands.items():
            self._processes[node_id] = await self._start(arguments)
        ends = {
            loop.create_task(self._follow(node_id, process)): node_id
            for node_id, process in self._processes.items()
        }
        stopping = loop.create_task(self._stopping.wait())
        await asyncio.wait((stopping, *ends), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        status = 0
        for ended, node_id in ends.items():
            if ended.done() and not self._stopping.is_set():
                status = _report_end(node_id, ended.result(), "stopping the others")
        self._stopping.set()
        for ended, node_id in ends.items():
            if not ended.done():
                self._terminate(node_id)
                if await ended not in (0, -signal.SIGTERM):  # SIGTERM ends a broker that has just started
                    status = status or _report_end(node_id, ended.result(), "it was told to stop")
        return status

    def _stop(self) -> None:
        """Handle a signal: stop the brokers one after the other, at a second signal all at once."""
        if self._stopping.is_set():
            for node_id in self._processes:
                self._terminate(node_id)
        self._stopping.set()

    def _terminate(self, node_id: int) -> None:
        process = self._processes[node_id]
        if process.returncode is None:
            process.terminate()

    async def _start(self, arguments: Sequence[str]) -> asyncio.subprocess.Process:
        paths = [str(PACKAGE_DIRECTORY), os.environ.get("PYTHONPATH", "")]
        return await asyncio.create_subprocess_exec(
            # Modules are imported from this installation, not from the working directory.
            *(sys.executable, "-P", "-m", "logd", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_MAX,
            pass_fds=(self._pipe,),
            env={
                **os.environ,
                self._pipe_variable: str(self._pipe),
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            },
            start_new_session=True,  # Ctrl-C only reaches this process, which stops the brokers in turn
        )

    async def _follow(self, node_id: int, process: asyncio.subprocess.Process) -> int:
        """Print a broker's output to its end; return its exit status."""
        assert process.stdout is not None
        async for line in process.stdout:
            text = line.decode(errors="replace").rstrip()
            if (ready := _READY.match(text)) is None:
                print(text, flush=True)
                continue
            self._ready[node_id] = ready
            if len(self._ready) == len(self._processes):
                print(self._ready_line(), flush=True)
        return await process.wait()

    def _ready_line(self) -> str:
        ready = [self._ready[node_id] for node_id in self._commands]
        addresses = ",".join(each["address"] for each in ready)
        nodes = ", ".join(map(str, self._commands))
        return (
            f"logd ready at {addresses} (nodes {nodes}, cluster {ready[0]['cluster']}, {self._age():.2f} s)"
        )


def _report_end(node_id: int, status: int, consequence: str) -> int:
    """Report how a broker has ended; return the exit status of this process."""
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    print(f"logd: broker {node_id} {how}: {consequence}", file=sys.stderr, flush=True)
    return status if status > 0 else 1
