"""The command's table of subcommands.

Each package offers its own commands under the entry point group `millstream.commands`; nothing is
imported before its subcommand is asked for, so that `millstream logd` starts as fast as logd does.

For the same reason those of this distribution stand here once more, with the line of `--help`: looking
through all that is installed takes longer than Python does to start.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer.core import TyperGroup

from millstream.commands.completion.variable import COMPLETE
from millstream.kafka_tools.table import KAFKA_TOOLS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "millstream.commands"


class Own(NamedTuple):
    """A subcommand of this distribution."""

    place: str
    """The object, as in an entry point: `module:attribute`."""
    help: str


OWN = {
    "demo": Own("millstream.demo.cli:app", "The main job: New York's flights of 2013 through every part."),
    "logd": Own("logd.cli:app", "The log daemon: a broker every Kafka client can talk to."),
    "connect": Own("connect.cli:app", "The Connect worker: runs source and sink plugins."),
    "streams": Own("streams.cli:app", "Describe and run stream topologies."),
    "mirror": Own(
        "millstream.commands.mirror.cli:app", "Copy topics between clusters, and prove the copies equal."
    ),
    "spark": Own(
        "millstream.commands.spark.cli:app",
        "Tables of the Spark sink: list, verify, compact and backfill them.",
    ),
    "cluster": Own(
        "millstream.commands.cluster.cli:app",
        "The cluster: its id and controller, its brokers, and what they speak.",
    ),
    "broker": Own("millstream.commands.broker.cli:app", "Brokers: list them, and have them stop."),
    "topic": Own(
        "millstream.commands.topic.cli:app",
        "Topics: create, list, describe, grow and delete them, and ask for their offsets.",
    ),
    "group": Own(
        "millstream.commands.group.cli:app",
        "Groups of consumers: their members, offsets and lag; set offsets, delete.",
    ),
    "config": Own(
        "millstream.commands.config.cli:app",
        "Settings of topics, brokers and groups: describe, alter and delete them.",
    ),
    "user": Own(
        "millstream.commands.user.cli:app",
        "Users that log in by SCRAM: list, add and remove them; set the first one.",
    ),
    "acl": Own(
        "millstream.commands.acl.cli:app",
        "Access control lists (ACLs): who may do what. List, add and remove them.",
    ),
    "log-dirs": Own(
        "millstream.commands.log_dirs.cli:app",
        "Brokers' log folders: what is in them and how much room they have.",
    ),
    "partition": Own(
        "millstream.commands.partition.cli:app",
        "Partitions: elect their leaders, move them to other brokers.",
    ),
    "produce": Own(
        "millstream.commands.produce.cli:app", "Write records to a topic: lines, JSON lines, files."
    ),
    "consume": Own(
        "millstream.commands.consume.cli:app",
        "Print records of topics: lines, JSON lines, a format of your own.",
    ),
    "bench": Own("millstream.commands.bench.cli:app", "Measure how fast records are written and read."),
    "txn": Own(
        "millstream.commands.txn.cli:app",
        "Transactions: list and describe them, find and abort those that hang.",
    ),
    "profile": Own("millstream.commands.profile.cli:app", "Named clusters with their security settings."),
    "completion": Own("millstream.commands.completion.cli:app", "Completion for bash, zsh and fish."),
    "doctor": Own(
        "millstream.commands.doctor.cli:app",
        "Look at this machine: Java, ports, file limits, disk, ZooKeeper.",
    ),
    "test-broker": Own(
        "millstream.testing.cli:app", "A broker for the time of a command: for tests in any language."
    ),
    "zookeeper": Own(
        "millstream.commands.zookeeper.cli:app",
        "ZooKeeper servers on this machine, for development and tests.",
    ),
    "dump-log": Own("logd.dump_log.cli:app", "Print a log's files as Kafka's DumpLogSegments does."),
    **{
        name: Own(f"millstream.kafka_tools.{each.module}:app", each.help)
        for name, each in KAFKA_TOOLS.items()
    },
}


def _installed() -> dict[str, EntryPoint]:
    """Return the subcommands of all installed distributions, from their entry points."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


class CommandTable(TyperGroup):
    """Subcommands found by entry point and loaded when they are used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all subcommands, those of this distribution first."""
        return [*OWN, *sorted(_installed().keys() - OWN.keys())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return the subcommand of that name, or None."""
        if (own := OWN.get(cmd_name)) is not None:
            module, _, attribute = own.place.partition(":")
            app = getattr(import_module(module), attribute)
        elif (point := _installed().get(cmd_name)) is not None:
            app = point.load()
        else:
            return None
        command = _without_rich(typer.main.get_command(app))
        command.name = cmd_name
        command.help = command.help or (own.help if own else None)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the subcommand that `args` begin with.

        A wrong name is an error that suggests the nearest one.
        """
        from difflib import get_close_matches

        if args[0] not in OWN and args[0] not in _installed() and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of `--help`, without importing subcommands of this distribution."""
        lines = self._lines(ctx)
        with formatter.section("Commands"):
            formatter.write_dl([line for line in lines if line[0] not in KAFKA_TOOLS])
        with formatter.section("Kafka's tools, with their own options"):
            formatter.write_dl([line for line in lines if line[0] in KAFKA_TOOLS])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the subcommands that begin with `incomplete`."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from typer._click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]

    def _lines(self, ctx: Any) -> list[tuple[str, str]]:
        return [
            (name, OWN[name].help if name in OWN else self.get_command(ctx, name).get_short_help_str(100))
            for name in self.list_commands(ctx)
        ]


def _without_rich(command: Any) -> Any:
    """Make a command and its subcommands print plain text, since Rich takes 0.1 s to import."""
    command.rich_markup_mode = None
    for below in getattr(command, "commands", {}).values():
        _without_rich(below)
    return command


app = typer.Typer(
    cls=CommandTable,
    help="Millstream: a Kafka-compatible platform in Python.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import PackageNotFoundError, version

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
    """Run the `millstream` command."""
    if COMPLETE in os.environ:
        # Typer registers shells only with its own options for completion.
        from typer._completion_classes import completion_init

        completion_init()
    sys.exit(app(prog_name="millstream"))
