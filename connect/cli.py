"""`millstream connect`: run a standalone worker, look at plugins.

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
import json
import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from connect.authoring.commands import app as authoring
from connect.config import SinkConfig, SourceConfig, document, read_config_file, validate
from connect.errors import MillstreamError
from connect.runtime import Worker, WorkerConfig, connector_class, connector_type, list_plugins
from connect.runtime.plugins import registered_names
from kafka_client.log_level import LogLevel

app = typer.Typer(
    help="Connect: move data between the log and other systems.", no_args_is_help=True, add_completion=False
)
app.add_typer(authoring)
_GC_THRESHOLD = 50_000
"""Allocations between two garbage collections."""


def _complete_plugins(incomplete: str) -> list[str]:
    """Return the plugin names that start with `incomplete`, for the shell's completion."""
    return sorted(name for name in registered_names() if name.startswith(incomplete))


@app.command()
def standalone(
    worker_file: Annotated[Path, typer.Argument(metavar="WORKER", help="worker.properties or .json")],
    connector_files: Annotated[
        list[Path], typer.Argument(metavar="CONNECTOR...", help="one file per connector")
    ],
    override: Annotated[
        list[str] | None, typer.Option("--override", help="a worker setting, key=value; may be repeated")
    ] = None,
    exit_when_done: Annotated[
        bool,
        typer.Option(help="end once every source has ended, all is acknowledged and sinks have caught up"),
    ] = False,
    status_interval: Annotated[
        float, typer.Option(min=0, help="seconds between status lines; 0: only changes")
    ] = 0,
    log_level: Annotated[LogLevel, typer.Option(case_sensitive=False, help="what stderr tells")] = (
        LogLevel.WARNING
    ),
) -> None:
    """Run connectors in one process. Ends cleanly on SIGTERM or Ctrl-C: flushed and committed.

    The exit status is 1 when a connector or task had failed at the end.
    """
    logging.basicConfig(level=log_level.value, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    _find_own_modules()
    try:
        worker = {**read_config_file(worker_file), **dict(_pair(o) for o in override or [])}
        config = WorkerConfig.parse(worker)
        connectors = [read_config_file(path) for path in connector_files]
        failed = asyncio.run(_run(config, connectors, exit_when_done, status_interval))
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    raise typer.Exit(1 if failed else 0)


@app.command()
def plugins() -> None:
    """List the connector plugins that are installed; one that cannot be loaded with its error."""
    for plugin in list_plugins():
        typer.echo(json.dumps(plugin))


@app.command("config")
def show_config(
    plugin: Annotated[
        str,
        typer.Argument(metavar="PLUGIN", help="as in connector.class", autocompletion=_complete_plugins),
    ],
    check: Annotated[Path | None, typer.Option(metavar="FILE", help="validate this connector file")] = None,
) -> None:
    """Show a plugin's settings, or validate a connector's config; errors give exit status 1."""
    _find_own_modules()
    try:
        plugin_class = connector_class(plugin)
        declaration = plugin_class.CONFIG
        if check is None:
            typer.echo(document(declaration))
            return
        common = SourceConfig if connector_type(plugin_class) == "source" else SinkConfig
        declarations = [declaration] if issubclass(declaration, common) else [common, declaration]
        report = validate(plugin, declarations, read_config_file(check))
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    typer.echo(json.dumps(report, indent=2))
    raise typer.Exit(1 if report["error_count"] else 0)


def _find_own_modules() -> None:
    """Make modules in the current folder importable as `connector.class`, as under `python -m`."""
    sys.path.insert(0, "")


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"{text!r} is not key=value")
    return key.strip(), value.strip()


def _say(event: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


async def _run(
    config: WorkerConfig,
    connectors: list[Mapping[str, Any]] | list[dict[str, Any]],
    until_done: bool,
    interval: float,
) -> bool:
    """Run until a signal comes or all is done. Return True if a connector or task has failed."""
    # Records form no cycles, and there are thousands of them: collecting cycles would take a tenth of the
    # time.
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    stopped, changed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with Worker(config, on_change=changed.set) as worker:
        names = [await worker.start_connector(connector) for connector in connectors]
        _say("started", worker_id=worker.worker_id, connectors=names)
        reporting = asyncio.create_task(_report(worker, changed, interval))
        waits: set[asyncio.Task[Any]] = {asyncio.create_task(stopped.wait())}
        if until_done:
            waits.add(asyncio.create_task(worker.wait_done()))
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in (*waits, reporting):
            task.cancel()
        for task in done:
            task.result()
    failed = worker.failed  # including failures of the last flush and commit
    _say("stopped", failed=failed, connectors=worker.status())
    return failed


async def _report(worker: Worker, changed: asyncio.Event, interval: float) -> None:
    while True:
        try:
            async with asyncio.timeout(interval or None):
                await changed.wait()
        except TimeoutError:
            pass
        changed.clear()
        _say("status", connectors=worker.status())
