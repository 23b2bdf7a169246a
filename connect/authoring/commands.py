"""The commands for authors: `millstream connect new`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from connect.authoring.new_plugin import write_plugin
from connect.errors import MillstreamError

app = typer.Typer()


class _Role(StrEnum):
    SOURCE = "source"
    SINK = "sink"


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="the module's name, as order_book")],
    role: Annotated[_Role, typer.Option("--type", help="the direction: into the log, or out of it")],
    folder: Annotated[Path, typer.Option(help="where the files are written")] = Path(),
) -> None:
    """Write a new plugin: a typed connector, its test with the conformance suite, and a config."""
    try:
        paths = write_plugin(name, role.value, folder)
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    for path in paths:
        typer.echo(path)
    typer.echo(f"Test it: python -m pytest {paths[1]}", err=True)
