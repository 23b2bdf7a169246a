"""`millstream connect standalone`: a worker in one process, with its REST interface.

The worker writes one JSON object a line to stdout, for programs and people alike:

    {"event": "started", "worker_id": ..., "connectors": [name, ...]}
    {"event": "status", "connectors": [...]}      when a state changes, and every --status-interval seconds
    {"event": "stopped", "failed": false, "connectors": [...]}

`connectors` has the shape of Connect's REST status, with each task's counts beside its state.
Warnings and errors go to stderr by `logging`.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from connect.cli.local import find_own_modules
from connect.cli.rest_interface import bound_server
from connect.cli.worker_process import log_to_stderr, say, worker_settings
from connect.config import read_config_file
from connect.config.rest import RestConfig
from connect.errors import MillstreamError
from connect.runtime import Worker, WorkerConfig
from connect.runtime.standalone_service import StandaloneService
from kafka_client.log_level import LogLevel

_GC_THRESHOLD = 50_000
"""Allocations between two garbage collections."""


def standalone(
    worker_file: Annotated[Path, typer.Argument(metavar="WORKER", help="worker.properties or .json")],
    connector_files: Annotated[
        list[Path] | None, typer.Argument(metavar="[CONNECTOR...]", help="one file per connector")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--override", help="a worker setting, key=value; may be repeated")
    ] = None,
    exit_when_done: Annotated[
        bool,
        typer.Option(help="end once every source has ended, all is acknowledged and sinks have caught up"),
    ] = False,
    exit_on_failure: Annotated[
        bool, typer.Option(help="end as soon as a connector or a task has failed, with exit status 1")
    ] = False,
    status_interval: Annotated[
        float, typer.Option(min=0, help="seconds between status lines; 0: only changes")
    ] = 0,
    log_level: Annotated[LogLevel, typer.Option(case_sensitive=False, help="what stderr tells")] = (
        LogLevel.WARNING
    ),
) -> None:
    """Run connectors in one process. Ends cleanly on SIGTERM or Ctrl-C: flushed and committed.

    Its REST interface is at `listeners`, http://:8083 unless set; `--override listeners=` for none.

    The exit status is 1 when a connector or task had failed at the end.
    """
    log_to_stderr(log_level)
    find_own_modules()
    try:
        worker = worker_settings(worker_file, override)
        connectors = [read_config_file(path) for path in connector_files or []]
        running = _run(
            WorkerConfig.parse(worker),
            RestConfig.parse(worker),
            connectors,
            until_done=exit_when_done,
            until_failed=exit_on_failure,
            interval=status_interval,
        )
        failed = asyncio.run(running)
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    raise typer.Exit(1 if failed else 0)


async def _run(
    config: WorkerConfig,
    rest: RestConfig,
    connectors: Sequence[Mapping[str, Any]],
    *,
    until_done: bool,
    until_failed: bool,
    interval: float,
) -> bool:
    """Run until a signal comes or all is done. Return True if a connector or task has failed."""
    # Records form no cycles, and there are thousands of them: collecting cycles would take a tenth of the
    # time.
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    stopped, changed, failed = asyncio.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)

    def note() -> None:
        changed.set()
        if worker.failed:
            failed.set()

    server = bound_server(rest)
    worker = Worker(config, on_change=note, worker_id=None if server is None else server.worker_id)
    try:
        async with worker:
            service = StandaloneService(worker)
            service.is_ready = False
            if server is not None:
                await server.serve(service, config, worker.metrics)
            starting = asyncio.create_task(worker.start_connectors(connectors))
            if await _first_of(stopped.wait(), starting) is starting:  # a connector's start may hang
                service.is_ready = True
                facts = {} if server is None else {"rest": server.url}
                say("started", worker_id=worker.worker_id, connectors=starting.result(), **facts)
                reporting = asyncio.create_task(_report(worker, changed, interval))
                ends = [
                    *([worker.wait_done()] if until_done else []),
                    *([failed.wait()] if until_failed else []),
                ]
                await _first_of(stopped.wait(), *ends)
                reporting.cancel()
            if server is not None:
                await server.close()
    finally:
        if server is not None:
            await server.close()
    has_failed = worker.failed  # including failures of the last flush and commit
    say("stopped", failed=has_failed, connectors=worker.status())
    return has_failed


async def _first_of(*waits: Coroutine[Any, Any, Any] | asyncio.Task[Any]) -> asyncio.Task[Any]:
    """Return the first of several waits to end, and cancel the others. Raises its exception."""
    tasks = [each if isinstance(each, asyncio.Task) else asyncio.create_task(each) for each in waits]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    for task in done:
        task.result()
    return next(task for task in reversed(tasks) if task in done)


async def _report(worker: Worker, changed: asyncio.Event, interval: float) -> None:
    while True:
        try:
            async with asyncio.timeout(interval or None):
                await changed.wait()
        except TimeoutError:
            pass
        changed.clear()
        say("status", connectors=worker.status())
