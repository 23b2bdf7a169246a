"""`millstream zookeeper`: an ensemble on this machine until Ctrl-C; for development and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def zookeeper(
    nodes: Annotated[int, typer.Option(min=1, help="How many servers; 3 survive the loss of one.")] = 1,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where data and logs are, and the ports, which it keeps; without it all goes in the end.",
        ),
    ] = None,
    tick_time: Annotated[
        int, typer.Option(min=10, help="ZooKeeper's tickTime in ms; sessions last from 2 to 20 of it.")
    ] = 2000,
    class_path: Annotated[
        str | None, typer.Option(help="ZooKeeper's jars, as for java -cp; PySpark's otherwise.")
    ] = None,
) -> None:
    """Run ZooKeeper servers on free ports of loopback, out of PySpark's jars.

    Prints one line when all serve, with what zookeeper.connect takes. A server that is killed is reported and
    not started again.
    """
    from millstream.commands.zookeeper.running import run
    from millstream.terminal.command import reported

    with reported("millstream zookeeper"):
        raise typer.Exit(run(folder, nodes, tick_time, class_path))
