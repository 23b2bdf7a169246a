"""`millstream mirror verify`: whether topics of two clusters are equal, beside what `mirror.cli` has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millstream.terminal.command import local_command, run_loop
from millstream.terminal.session import Local
from millstream.terminal.status import Unhealthy
from mirror.cli import app

__all__ = ["app"]


@local_command(app)
def verify(
    local: Local,
    *,
    source: Annotated[str, typer.Option("--source", help="Bootstrap servers of the source.")],
    target: Annotated[str, typer.Option("--target", help="Bootstrap servers of the target.")],
    topic: Annotated[
        list[str], typer.Option("--topic", help="Topic of the source, or SOURCE:TARGET; repeatable.")
    ],
    alias: Annotated[
        str,
        typer.Option("--alias", help="The source's alias: its topics are called ALIAS.TOPIC in the target."),
    ] = "",
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Properties of the clients: security.protocol, ssl.*, sasl.* ...",
        ),
    ] = None,
    target_config: Annotated[
        Path | None,
        typer.Option(
            "--target-config", metavar="FILE", help="The same for the target, if it is another file."
        ),
    ] = None,
) -> None:
    """Compare topics by digest over key, value, headers and timestamp; the exit status is 7 if any differ."""
    from kafka_client import Client
    from kafka_client.properties import read_command_config
    from millstream.commands.mirror.verify import compare_topics, pair

    ours = read_command_config(command_config)
    theirs = ours if target_config is None else read_command_config(target_config)
    pairs = [pair(name, alias) for name in topic]
    different = run_loop(compare_topics(local, Client(source, **ours), Client(target, **theirs), pairs))
    if different:
        raise Unhealthy(f"different: {', '.join(different)}")
