"""`millstream connect distributed`: run one worker of a group, with its REST interface.

The worker writes one JSON object a line to stdout: `{"event": "started", "worker_id": ..., "url": ...}` and
`{"event": "stopped", "failed": false}`. Warnings and errors go to stderr by `logging`.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from connect.cli.local import find_own_modules
from connect.cli.worker_process import Http, say, worker_settings
from connect.config.rest import RestConfig
from connect.distributed import DistributedConfig, DistributedService, DistributedWorker
from connect.errors import ConfigError, MillstreamError
from kafka_client.http import check_installed
from kafka_client.http.client import HttpClient
from kafka_client.logs.formats import LogFormat
from kafka_client.logs.stderr import LogForm, LogLevels, LogOptions, log_to_stderr


def distributed(
    worker_file: Annotated[Path, typer.Argument(metavar="WORKER", help="worker.properties or .json")],
    override: Annotated[
        list[str] | None, typer.Option("--override", help="a worker setting, key=value; may be repeated")
    ] = None,
    http: Http = None,
    log_level: LogLevels = None,
    log_format: LogForm = LogFormat.AUTO,
) -> None:
    """Run one worker of a group; connectors come over its REST interface, at `listeners`.

    All workers with the same group.id share the connectors. Ends cleanly on SIGTERM or Ctrl-C: flushed,
    committed, and out of the group. The exit status is 1 if the worker could not stay in its group.
    """
    find_own_modules()
    try:
        log_to_stderr(LogOptions(log_level, log_format), default="WARN")
        settings = worker_settings(worker_file, override, http)
        failed = asyncio.run(_run(DistributedConfig.parse(settings), RestConfig.parse(settings)))
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    raise typer.Exit(1 if failed else 0)


async def _run(config: DistributedConfig, rest: RestConfig) -> bool:
    """Run until a signal comes or the membership ends. Return True if it ended with an error."""
    if not rest.listeners:
        raise ConfigError("listeners", "", "must name an address: workers of a group reach each other there")
    check_installed("listeners")
    from connect.rest.assembly import rest_parts
    from connect.rest.server import RestServer

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = RestServer(rest)
    try:
        server.bind()
        client = HttpClient(timeout=rest.rest_request_timeout_ms / 1000, tls=server.client_tls)
        worker = DistributedWorker(
            config,
            url=server.url,
            worker_id=server.url.partition("://")[2],
            request=client.request,
            on_failed=lambda error: stopped.set(),
        )
        async with worker:
            await server.start(rest_parts(DistributedService(worker), config, rest, worker.metrics))
            say("started", worker_id=worker.worker_id, url=server.url)
            await stopped.wait()
    finally:
        await server.close()
    say("stopped", failed=worker.failure is not None)
    return worker.failure is not None
