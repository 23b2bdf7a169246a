"""The command `millstream mirror run`: links from an mm2.properties file.

Its other verbs are `millstream.commands.mirror`'s.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from kafka_client.errors import ConfigError, MillstreamError
from kafka_client.http import check_installed
from kafka_client.http.access import HttpAccess
from kafka_client.java_properties import read_properties
from kafka_client.logs.formats import LogFormat
from kafka_client.logs.stderr import LogForm, LogLevels, LogOptions, log_to_stderr
from kafka_client.metrics.metrics import Metrics
from mirror.config import HTTP_LISTENER, LinkSettings, http_access, parse_http_listener, parse_links
from mirror.errors import MirrorError
from mirror.flow_status import STATUS_PATH, flows_status
from mirror.links import SupervisedLink, problem_of, run_links
from mirror.stalls import STALL_SECONDS
from mirror.status import lag_line

app = typer.Typer(add_completion=False, no_args_is_help=True)

REPORT_SECONDS = 10.0

_T = TypeVar("_T")


@app.callback()
def _options() -> None:
    """Copy topics between clusters, and prove the copies equal."""


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="MirrorMaker 2's mm2.properties.")],
    clusters: Annotated[
        str | None, typer.Option("--clusters", help="Only links whose target is one of these aliases.")
    ] = None,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End once everything is copied that is there now.")
    ] = False,
    http: Annotated[
        str | None,
        typer.Option(
            "--http", metavar="HOST:PORT", help="Serve metrics and health there, in place of http.listener."
        ),
    ] = None,
    log_level: LogLevels = None,
    log_format: LogForm = LogFormat.AUTO,
) -> None:
    """Copy topics by the flows enabled in CONFIG, until SIGTERM or SIGINT.

    The exit status is 1 if in the end a flow was down, or a partition in quarantine or not copied.
    """
    try:
        log_to_stderr(LogOptions(log_level, log_format), default="INFO")
        properties = read_properties(config)
        if http is not None:
            properties = {**properties, HTTP_LISTENER: http}
        links, listener = _read_links(properties, clusters), parse_http_listener(properties)
        access = http_access(properties) if listener else None
        status = _run(_run_links(links, until_caught_up, listener, access))
    except MillstreamError as e:
        typer.echo(f"mirror: {e}", err=True)
        raise typer.Exit(2 if isinstance(e, ConfigError) else 1) from None
    if status:
        raise typer.Exit(status)


def _run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run `main` on uvloop if it is installed, else on asyncio's own event loop."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def _read_links(properties: Mapping[str, str], clusters: str | None) -> list[LinkSettings]:
    links = parse_links(properties)
    if clusters is None:
        return links
    targets = {alias.strip() for alias in clusters.split(",")}
    selected = [link for link in links if link.target.alias in targets]
    if not selected:
        raise ConfigError("--clusters", clusters, "no enabled link has one of them as its target")
    return selected


async def _run_links(
    settings: Sequence[LinkSettings], until_caught_up: bool, listener: str, access: HttpAccess | None
) -> int:
    loop = asyncio.get_running_loop()
    metrics = Metrics()
    links = [SupervisedLink(each, metrics=metrics) for each in settings]
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, links)
    async with AsyncExitStack() as stack:
        if listener:
            await _serve(stack, listener, access, metrics, links)
        reporter = asyncio.create_task(_report(links))
        try:
            return await run_links(links, until_caught_up=until_caught_up)
        finally:
            reporter.cancel()
            _print_summary(links, rates=True)


async def _serve(
    stack: AsyncExitStack,
    listener: str,
    access: HttpAccess | None,
    metrics: Metrics,
    links: Sequence[SupervisedLink],
) -> None:
    """Serve metrics, health and status until `stack` ends. Raises MillstreamError if the address is taken."""
    check_installed(HTTP_LISTENER)
    from kafka_client.http.operations import OperationsServer

    server = OperationsServer(
        listener,
        metrics,
        ready=lambda: problem_of(links),
        facts={STATUS_PATH: lambda: flows_status(links)},
        access=access,
    )
    await stack.enter_async_context(server)


def _stop(links: Sequence[SupervisedLink]) -> None:
    for link in links:
        link.stop()


async def _report(links: Sequence[SupervisedLink]) -> None:
    """Print the summary every `REPORT_SECONDS` if it has changed."""
    printed = ""
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        current = "".join(_progress(link) for link in links)
        if current != printed:
            _print_summary(links)
        printed = current


def _progress(flow: SupervisedLink) -> str:
    """Return the parts of a summary that show progress, without the lag's age, which always changes."""
    if flow.link is None:
        return f"{flow.failure}"
    stalled = sorted(flow.link.progress.stalls.stalled)
    lag = [status.lag_records for status in flow.link.status().values()]
    return f"{lag} {stalled} {flow.failure} {_totals(flow)}"


def _totals(flow: SupervisedLink) -> tuple[int, int, int]:
    """Return how many records and bytes were copied, and how many partitions are in quarantine."""
    if flow.link is None:
        return 0, 0, 0
    status = flow.link.status().values()
    return sum(s.records for s in status), sum(s.bytes for s in status), len(flow.link.quarantined)


def _print_summary(links: Sequence[SupervisedLink], *, rates: bool = False) -> None:
    for flow in links:
        typer.echo(f"{flow.settings.name}: {_summary(flow, rates)}")
        for tp, entry in sorted(flow.link.quarantined.items()) if flow.link is not None else ():
            typer.echo(f"  {tp} quarantined, {entry.failures} attempts, {entry.reason}: {entry.error.what}")
        for line in flow.link.progress.lines() if flow.link is not None else ():
            typer.echo(f"  {line}")


def _summary(flow: SupervisedLink, rates: bool) -> str:
    if flow.link is None:
        return f"down: {flow.failure or 'not open yet'}"
    down = f"down: {flow.failure}; " if flow.failure and not isinstance(flow.failure, MirrorError) else ""
    records, size, quarantined = _totals(flow)
    status, skips = flow.link.status().values(), flow.link.skips
    seconds = time.monotonic() - flow.opened_at
    stalled = len(flow.link.progress.stalls.stalled)
    rate = f", {records / seconds:,.0f} records/s, {size / seconds / 1e6:,.1f} MB/s" if rates else ""
    return (
        f"{down}{records:,} records, {size / 1e6:,.1f} MB{rate}, {len(status)} partitions, "
        f"{lag_line(status)}"
        + (f", {stalled} not copied for {STALL_SECONDS:.0f} s" if stalled else "")
        + (f", {quarantined} quarantined" if quarantined else "")
        + (
            f", {skips.records:,} records in {skips.batches} unreadable batches skipped"
            if skips.batches
            else ""
        )
    )
