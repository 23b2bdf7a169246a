"""The command `millstream mirror`: run links from an mm2.properties file, verify that topics are equal."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from logd.client import Client
from logd.config.properties import parse_properties
from logd.errors import ConfigError, MillstreamError
from mirror.config import LinkSettings, parse_links
from mirror.link import Link
from mirror.verify import PartitionComparison, verify_topic

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Copy topics between clusters, and prove the copies equal.",
)

REPORT_SECONDS = 10.0

_T = TypeVar("_T")


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
    """Copy topics by the flows enabled in CONFIG, until SIGTERM or SIGINT."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        links = _read_links(config, clusters)
        _run(_run_links(links, until_caught_up))
    except MillstreamError as e:
        typer.echo(f"mirror: {e}", err=True)
        raise typer.Exit(2 if isinstance(e, ConfigError) else 1) from None


@app.command()
def verify(
    source: Annotated[str, typer.Option("--source", help="Bootstrap servers of the source.")],
    target: Annotated[str, typer.Option("--target", help="Bootstrap servers of the target.")],
    topic: Annotated[
        list[str], typer.Option("--topic", help="Topic of the source, or SOURCE:TARGET; repeatable.")
    ],
    alias: Annotated[
        str,
        typer.Option("--alias", help="The source's alias: its topics are called ALIAS.TOPIC in the target."),
    ] = "",
) -> None:
    """Compare topics by digest over key, value, headers and timestamp; the exit status is 1 if any differ."""
    pairs = [_pair(name, alias) for name in topic]
    try:
        equal = _run(_verify(source, target, pairs))
    except MillstreamError as e:
        typer.echo(f"mirror: {e}", err=True)
        raise typer.Exit(2) from None
    if not equal:
        raise typer.Exit(1)


def _run(main: Coroutine[Any, Any, _T]) -> _T:
    """On uvloop where it installs, as logd runs."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def _read_links(path: Path, clusters: str | None) -> list[LinkSettings]:
    try:
        links = parse_links(parse_properties(path.read_text("utf-8-sig")))
    except OSError as e:
        raise ConfigError("file", path, f"cannot be read: {e.strerror}") from None
    except UnicodeDecodeError as e:
        raise ConfigError("file", path, f"must be in UTF-8: {e}") from None
    if clusters is None:
        return links
    wanted = {alias.strip() for alias in clusters.split(",")}
    chosen = [link for link in links if link.target.alias in wanted]
    if not chosen:
        raise ConfigError("--clusters", clusters, "no enabled link has one of them as its target")
    return chosen


async def _run_links(settings: Sequence[LinkSettings], until_caught_up: bool) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        links = [await stack.enter_async_context(Link(each)) for each in settings]
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _stop, links)
        began = time.monotonic()
        reporter = asyncio.create_task(_report(links))
        try:
            async with asyncio.TaskGroup() as group:
                for link in links:
                    group.create_task(link.run(until_caught_up=until_caught_up))
        except* MillstreamError as failed:
            raise failed.exceptions[0] from None
        finally:
            reporter.cancel()
        _print_summary(links, time.monotonic() - began)


def _stop(links: Sequence[Link]) -> None:
    for link in links:
        link.stop()


async def _report(links: Sequence[Link]) -> None:
    """A line per link now and then, while there is something to say."""
    before = -1
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        total = sum(status.records for link in links for status in link.status().values())
        if total != before:
            _print_summary(links, None)
        before = total


def _print_summary(links: Sequence[Link], seconds: float | None) -> None:
    for link in links:
        status = link.status().values()
        records, size = sum(s.records for s in status), sum(s.bytes for s in status)
        rate = (
            "" if not seconds else f", {records / seconds:,.0f} records/s, {size / seconds / 1e6:,.1f} MB/s"
        )
        typer.echo(
            f"{link.settings.name}: {records:,} records, {size / 1e6:,.1f} MB{rate}, "
            f"{len(status)} partitions, lag {sum(s.lag_records for s in status):,} records, "
            f"{max((s.lag_seconds for s in status), default=0):,.1f} s"
        )


def _pair(name: str, alias: str) -> tuple[str, str]:
    topic, colon, remote = name.partition(":")
    return topic, remote if colon else f"{alias}.{topic}" if alias else topic


async def _verify(source: str, target: str, pairs: Sequence[tuple[str, str]]) -> bool:
    equal = True
    async with Client(source) as source_client, Client(target) as target_client:
        for topic, remote in pairs:
            found = await verify_topic(source_client, target_client, topic, remote)
            verdict = "equal" if found.equal else "DIFFERENT"
            typer.echo(f"{topic} and {remote}: {verdict}, {found.records:,} records")
            for partition in found.partitions:
                typer.echo(f"  {_partition_line(partition)}")
            equal = equal and found.equal
    return equal


def _partition_line(found: PartitionComparison) -> str:
    if found.equal:
        return f"{found.partition:>4}  {found.source_digest}  {found.source_records:,} records"
    return (
        f"{found.partition:>4}  {found.source_digest} ({found.source_records:,} records) is not "
        f"{found.target_digest} ({found.target_records:,} records); {found.difference}"
    )
