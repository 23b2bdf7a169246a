"""N processes of one application: forked by the command and stopped together; none outlives the command.

A worker that fails, or is killed, ends all of them, so that systemd or Kubernetes can restart the command. A
worker that ends because it has caught up leaves its tasks to the others. Workers read a pipe that only the
command holds open, so they notice the command's end, whatever its cause.
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

from kafka_client.http.address import next_port
from streams.config import StreamsConfig

FAILED = 1


def config_of(config: StreamsConfig, worker: int) -> StreamsConfig:
    """Return a worker's settings.

    The first worker has the state folder of a single instance, the others have folders in it. The ports of
    the others are those of the first plus their numbers.
    """
    if worker == 0:
        return config
    client_id = f"{config.client_id or config.application_id}-{worker}"
    instance = config.group_instance_id
    return replace(
        config,
        application_server=next_port(config.application_server, worker),
        http_listener=next_port(config.http_listener, worker),
        state_dir=str(Path(config.state_dir) / f"worker-{worker}"),
        client_id=client_id,
        group_instance_id=None if instance is None else f"{instance}-{worker}",
    )


def run_workers(count: int, work: Callable[[int, int], int]) -> int:
    """Run ``work(worker, pipe)`` in ``count`` processes and wait for all.

    Returns 0, or the first failure's exit status. ``pipe`` ends (`ends_with`) when this process does. SIGTERM
    and SIGINT are passed to the workers. Call this before there are threads or event loops.
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
    """Do a worker's work and exit the process, without returning to the forking code."""
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
    """Raise the soft limit of open files to the hard one: each store is a database with several files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def ends_with(pipe: int, stop: asyncio.Event) -> None:
    """Set ``stop`` once the process that forked this one has ended."""

    def on_end() -> None:
        loop.remove_reader(pipe)
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(pipe, on_end)
