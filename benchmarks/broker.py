"""The broker under measurement: one that is running already, or a `logd` of our own in a temporary folder."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cpu import pid_listening_on
from millstream.demo.ports import free_port


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker's address, and the process whose CPU time is read."""

    host: str
    port: int
    pid: int

    @property
    def bootstrap(self) -> str:
        """The address as `host:port`."""
        return f"{self.host}:{self.port}"


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bootstrap-server", help="measure this broker (any that speaks Kafka's protocol)")
    parser.add_argument(
        "--broker-pid", type=int, help="its process; found by its port where it is on this machine"
    )
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each figure (one more warms up)")
    return parser


@contextmanager
def start_logd(
    folder: Path, overrides: Sequence[str] = (), *, quiet: bool = False
) -> Iterator[tuple[Broker, str]]:
    """Run a logd process with its data in `folder`. Yield its broker and the line it printed when ready."""
    port = free_port(19093)
    options = [f"listeners=PLAINTEXT://127.0.0.1:{port}", f"log.dirs={folder}", *overrides]
    command = [sys.executable, "-m", "logd"]
    for option in options:
        command += ["--override", option]
    stderr = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        assert process.stdout is not None
        yield Broker("127.0.0.1", port, process.pid), process.stdout.readline().rstrip()
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def broker_for(options: argparse.Namespace) -> Iterator[Broker]:
    """Yield the broker that the options name, or start one."""
    if options.bootstrap_server:
        host, port = options.bootstrap_server.rsplit(":", 1)
        yield Broker(host, int(port), options.broker_pid or pid_listening_on(int(port)))
        return
    with tempfile.TemporaryDirectory() as folder, start_logd(Path(folder)) as (broker, _):
        yield broker
