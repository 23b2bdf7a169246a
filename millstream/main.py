"""The command's table of subcommands.

Each package offers its own commands under the entry point group `millstream.commands`; nothing is
imported before its subcommand is asked for, so that `millstream logd` starts as fast as logd does.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any

import typer
from typer.core import TyperGroup

GROUP = "millstream.commands"

_HELP = {
    "logd": "The log daemon: a broker every Kafka client can talk to.",
    "connect": "The Connect worker: runs source and sink plugins.",
    "streams": "Describe and run stream topologies.",
    "mirror": "Copy topics between clusters, and prove the copies equal.",
    "dump-log": "Print a log's files as Kafka's DumpLogSegments does.",
    "cluster": "The cluster: its id and controller, its brokers, and what they speak.",
    "txn": "Transactions: list and describe them, find and abort those that hang.",
    "demo": "The main job: New York's flights of 2013 through every part.",
}


def _commands() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


class CommandTable(TyperGroup):
    """Subcommands found by entry point and loaded when they are used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all installed subcommands, the well-known ones first."""
        found = _commands()
        return [name for name in _HELP if name in found] + sorted(found.keys() - _HELP.keys())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The subcommand of that name, imported now; None where there is no such one."""
        point = _commands().get(cmd_name)
        if point is None:
            return None
        command = typer.main.get_command(point.load())
        command.name = cmd_name
        command.help = command.help or _HELP.get(cmd_name)
        return command


app = typer.Typer(
    cls=CommandTable,
    help="Millstream: a Kafka-compatible platform in Python.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"millstream {version('millstream')}")
        except PackageNotFoundError:
            typer.echo("millstream (not installed)")
        raise typer.Exit


@app.callback()
def _options(
    show_version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass


def main() -> None:
    """Entry point of the `millstream` script."""
    sys.exit(app())
