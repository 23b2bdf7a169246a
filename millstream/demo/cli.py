"""`millstream demo`."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from logd.errors import ConfigError, MillstreamError

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
) -> None:
    """The main job: New York's flights of 2013 through every part, and every count checked.

    The exit status is 0 only if everything agrees.
    """
    work = folder or Path(tempfile.mkdtemp(prefix="millstream-demo-"))
    try:
        holds = asyncio.run(_run(work, input, keep))
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None
    except MillstreamError as error:
        typer.echo(f"millstream demo: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from None
    finally:
        if folder is None:
            shutil.rmtree(work, ignore_errors=True)
    raise typer.Exit(0 if holds else 1)


async def _run(folder: Path, flights: Path | None, keep: bool) -> bool:
    from millstream.demo.display import Display
    from millstream.demo.layout import Layout
    from millstream.demo.result import show_addresses, show_outcome
    from millstream.demo.run import Demo

    if folder.exists() and any(folder.iterdir()):
        raise ConfigError("--folder", folder, "must be empty or not exist")
    demo = Demo(Layout.choose(folder, *_inputs(flights)), Display)
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


def _inputs(flights: Path | None) -> tuple[Path, Path]:
    from millstream.demo.flights import packaged, read_rows

    chosen = packaged("flights.csv.zip") if flights is None else flights.absolute()
    if not chosen.is_file():
        raise ConfigError("--input", chosen, "is not a file")
    next(read_rows(chosen), None)  # refuses a CSV without the columns before anything is started
    return chosen, packaged("airlines.csv")
