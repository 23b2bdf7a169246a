"""`millstream demo`."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from kafka_client.errors import ConfigError, MillstreamError

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    input: Annotated[
        Path | None, typer.Option("--input", help="Another CSV of flights, with the same columns.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running at the end, until Ctrl-C.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Work here and leave the data; must be empty or not exist."),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes",
            min=1,
            help="How many nodes dc1 has; several are a cluster, with a ZooKeeper of its own.",
        ),
    ] = 1,
    kill_leader: Annotated[
        bool,
        typer.Option("--kill-leader", help="Kill a node of dc1 in the midst, and see another take over."),
    ] = False,
) -> None:
    """Run the main job: New York's flights of 2013 through every part, and every count checked.

    The exit status is 0 only if everything agrees.
    """
    work = folder or Path(tempfile.mkdtemp(prefix="millstream-demo-"))
    holds = leave = False
    try:
        if kill_leader and nodes == 1:
            raise ConfigError(
                "--nodes",
                nodes,
                "must be 2 or more for --kill-leader: one node has nobody to take over from it",
            )
        holds = asyncio.run(_run(work, input, keep, nodes, kill_leader))
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None
    except MillstreamError as error:
        typer.echo(f"millstream demo: {error}", err=True)
        leave = not isinstance(error, ConfigError)  # kept for the logs in it
        raise typer.Exit(1 if leave else 2) from None
    finally:
        if folder is None and not leave:
            shutil.rmtree(work, ignore_errors=True)
    raise typer.Exit(0 if holds else 1)


async def _run(folder: Path, flights: Path | None, keep: bool, nodes: int, kill_leader: bool) -> bool:
    from millstream.demo.display import Display
    from millstream.demo.layout import FLIGHTS_PER_SECOND, Layout
    from millstream.demo.result import show_addresses, show_outcome
    from millstream.demo.run import Demo

    _check_folder(folder)
    rate = FLIGHTS_PER_SECOND if kill_leader else None
    layout = Layout.choose(folder, *_inputs(flights), nodes, flights_per_second=rate)
    _check_java()
    demo = Demo(layout, Display, kill_leader=kill_leader)
    try:
        with demo.display:
            await demo.start()
            outcome = await demo.work()
        show_outcome(demo.display.console, outcome)
        if keep:
            show_addresses(demo.display.console, demo)
            await asyncio.Event().wait()
    finally:
        await demo.stop()
    return outcome.holds


def _check_java() -> None:
    from plugins.spark.environment import java_found

    if not java_found():
        home = os.environ.get("JAVA_HOME")
        raise ConfigError(
            "JAVA_HOME", home or "", "Spark needs Java 17 or newer; there is no java here, nor on the PATH"
        )


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        used = any(folder.iterdir())
    except OSError as error:
        raise ConfigError("--folder", folder, f"must be a folder to write to: {error.strerror}") from error
    if used:
        raise ConfigError("--folder", folder, "must be empty or not exist")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError("--folder", folder, "must be a folder to write to")


def _inputs(flights: Path | None) -> tuple[Path, Path]:
    from millstream.demo.flights import packaged, read_rows

    chosen = packaged("flights.csv.zip") if flights is None else flights.absolute()
    if not chosen.is_file():
        raise ConfigError("--input", chosen, "is not a file")
    if next(read_rows(chosen), None) is None:  # raises ConfigError if a column is missing
        raise ConfigError("--input", chosen, "must hold at least one flight")
    return chosen, packaged("airlines.csv")
