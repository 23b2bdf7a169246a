"""The command `millstream mirror run`: links from an mm2.properties file.

Its other verb, `verify`, is `millstream.commands.mirror`'s.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from kafka_client.errors import ConfigError, MillstreamError
from kafka_client.java_properties import read_properties
from mirror.config import LinkSettings, parse_links
from mirror.errors import MirrorError
from mirror.links import KeptLink, run_links

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
) -> None:
    """Copy topics by the flows enabled in CONFIG, until SIGTERM or SIGINT.

    The exit status is 1 if in the end a flow was down or a partition in quarantine.
    """
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        status = _run(_run_links(_read_links(config, clusters), until_caught_up))
    except MillstreamError as e:
        typer.echo(f"mirror: {e}", err=True)
        raise typer.Exit(2 if isinstance(e, ConfigError) else 1) from None
    if status:
        raise typer.Exit(status)


def _run(main: Coroutine[Any, Any, _T]) -> _T:
    """On uvloop where it installs, as logd runs."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def _read_links(path: Path, clusters: str | None) -> list[LinkSettings]:
    links = parse_links(read_properties(path))
    if clusters is None:
        return links
    wanted = {alias.strip() for alias in clusters.split(",")}
    chosen = [link for link in links if link.target.alias in wanted]
    if not chosen:
        raise ConfigError("--clusters", clusters, "no enabled link has one of them as its target")
    return chosen


async def _run_links(settings: Sequence[LinkSettings], until_caught_up: bool) -> int:
    loop = asyncio.get_running_loop()
    links = [KeptLink(each) for each in settings]
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, links)
    reporter = asyncio.create_task(_report(links))
    try:
        return await run_links(links, until_caught_up=until_caught_up)
    finally:
        reporter.cancel()
        _print_summary(links, rates=True)


def _stop(links: Sequence[KeptLink]) -> None:
    for link in links:
        link.stop()


async def _report(links: Sequence[KeptLink]) -> None:
    """A line per flow now and then, while there is something to say."""
    before = ""
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        said = "".join(_news(link) for link in links)
        if said != before:
            _print_summary(links)
        before = said


def _news(kept: KeptLink) -> str:
    """What a line is for when it has changed; how old the lag is always changes."""
    lag = sum(s.lag_records for s in kept.link.status().values()) if kept.link is not None else -1
    return f"{lag} {kept.failure} {_totals(kept)}"


def _totals(kept: KeptLink) -> tuple[int, int, int]:
    """Records and bytes copied, partitions quarantined."""
    if kept.link is None:
        return 0, 0, 0
    status = kept.link.status().values()
    return sum(s.records for s in status), sum(s.bytes for s in status), len(kept.link.quarantined)


def _print_summary(links: Sequence[KeptLink], *, rates: bool = False) -> None:
    for kept in links:
        typer.echo(f"{kept.settings.name}: {_summary(kept, rates)}")
        for tp, held in sorted(kept.link.quarantined.items()) if kept.link is not None else ():
            typer.echo(f"  {tp} quarantined, {held.failures} attempts, {held.reason}: {held.error.what}")


def _summary(kept: KeptLink, rates: bool) -> str:
    if kept.link is None:
        return f"down: {kept.failure or 'not open yet'}"
    down = f"down: {kept.failure}; " if kept.failure and not isinstance(kept.failure, MirrorError) else ""
    records, size, quarantined = _totals(kept)
    status, skips = kept.link.status().values(), kept.link.skips
    seconds = time.monotonic() - kept.opened_at
    rate = f", {records / seconds:,.0f} records/s, {size / seconds / 1e6:,.1f} MB/s" if rates else ""
    return (
        f"{down}{records:,} records, {size / 1e6:,.1f} MB{rate}, {len(status)} partitions, "
        f"lag {sum(s.lag_records for s in status):,} records, "
        f"{max((s.lag_seconds for s in status), default=0):,.1f} s"
        + (f", {quarantined} quarantined" if quarantined else "")
        + (
            f", {skips.records:,} records in {skips.batches} unreadable batches skipped"
            if skips.batches
            else ""
        )
    )
