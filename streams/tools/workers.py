"""N processes of one application: forked off, told to end together, and none outlives the command.

A worker that fails, or is killed, ends all of them: whoever started the command (systemd, Kubernetes) starts
it anew. One that ends well, since it has caught up, leaves its tasks to the others. All of them see the
command's own end, however it comes, by that of a pipe that only it holds open.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from streams.config import StreamsConfig

FAILED = 1


def config_of(config: StreamsConfig, worker: int) -> StreamsConfig:
    """A worker's settings. The first has the state folder of a single instance, the others one in it;
    ports go up from the first one's."""
    if worker == 0:
        return config
    client_id = f"{config.client_id or config.application_id}-{worker}"
    instance = config.group_instance_id
    return replace(
        config,
        application_server=_port_on(config.application_server, worker),
        http_listener=_port_on(config.http_listener, worker),
        state_dir=str(Path(config.state_dir) / f"worker-{worker}"),
        client_id=client_id,
        group_instance_id=None if instance is None else f"{instance}-{worker}",
    )


def _port_on(address: str, worker: int) -> str:
    """The worker's host:port; a port that is free needs no other."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + worker}" if port not in ("", "0") else address


def run_workers(count: int, work: Callable[[int, int], int]) -> int:
    """Run ``work(worker, pipe)`` in ``count`` processes and wait for all; 0, or the first failure's status.

    ``pipe`` ends (`ends_with`) when this process does. SIGTERM and SIGINT go on to the workers. Fork before
    there are threads or event loops.
    """
    read, write = os.pipe()
    pids: dict[int, int] = {}
    sys.stdout.flush()
    for worker in range(count):
        pid = os.fork()
        if pid == 0:
            os.close(write)
            _be_worker(worker, read, work)
        pids[pid] = worker
    os.close(read)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: _tell(pids))
    status = 0
    while pids:
        pid, ended = os.wait()
        worker = pids.pop(pid)
        code = os.waitstatus_to_exitcode(ended)
        if code != 0 and status == 0:
            status = code if code > 0 else FAILED
            how = f"with status {code}" if code > 0 else f"by {signal.Signals(-code).name}"
            print(f"streams: worker {worker} ended {how}: ending all", file=sys.stderr, flush=True)
            _tell(pids)
    os.close(write)
    return status


def _tell(pids: dict[int, int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGTERM)


def _be_worker(worker: int, pipe: int, work: Callable[[int, int], int]) -> None:
    """Work, and end without a return into what forked."""
    status = FAILED
    try:
        status = work(worker, pipe)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else FAILED
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def raise_open_files_limit() -> None:
    """Lift the soft limit of open files to the hard one: each store is a database, and holds several open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def ends_with(pipe: int, stop: asyncio.Event) -> None:
    """Have ``stop`` set once the process that forked this one is gone."""

    def gone() -> None:
        loop.remove_reader(pipe)
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(pipe, gone)
