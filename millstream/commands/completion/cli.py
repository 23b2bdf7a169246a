"""`millstream completion`: the script that has a shell complete nouns, verbs, options and names.

Topics and groups come from the cluster that the line names so far (millstream.terminal.completion).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from millstream.commands.completion.variable import COMPLETE

app = typer.Typer(add_completion=False, no_args_is_help=True)


class Shell(StrEnum):
    """Shells that completion is for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish")],
    install: Annotated[
        bool, typer.Option("--install", help="Write it where the shell looks for it, instead of printing it.")
    ] = False,
) -> None:
    """Print a shell's script: source <(millstream completion bash)."""
    from typer import _completion_shared as scripts

    if install:
        _, path = scripts.install(shell=shell.value, prog_name="millstream", complete_var=COMPLETE)
        typer.echo(f"written to {path}; a new {shell.value} has it", err=True)
        return
    typer.echo(
        scripts.get_completion_script(prog_name="millstream", complete_var=COMPLETE, shell=shell.value)
    )
