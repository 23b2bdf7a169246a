"""Write the reference pages that are made from declarations: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import typer

from connect.config import Config, SinkConfig, SourceConfig, document
from connect.config.rest import RestConfig
from connect.converters.avro import AvroConverterConfig
from connect.converters.json import JsonConverterConfig
from connect.converters.json_schema import JsonSchemaConverterConfig
from connect.converters.protobuf import ProtobufConverterConfig
from connect.runtime import WorkerConfig, connector_class
from connect.runtime.plugins import GROUP
from logd.config import reference
from millstream.kafka_tools.table import KAFKA_TOOLS
from millstream.main import OWN
from millstream.main import app as millstream
from millstream.terminal.command import SHARED
from millstream.terminal.status import Status

FOLDER = Path(__file__).parent

_MADE = "<!-- Made by `make docs`: change the declarations, not this page. -->"


def pages() -> dict[str, str]:
    """Return the text of each page, by file name."""
    return {
        "logd-settings.md": logd_settings(),
        "connectors.md": "\n".join(connectors()),
        "cli.md": "\n".join(command_line()),
    }


def logd_settings() -> str:
    """Return the output of `python -m logd.config.reference`, under a heading."""
    return f"""\
{_MADE}

# logd: all settings

Give them in a file, `millstream logd --config server.properties`, or one by one, `--override key=value`.
A topic's own setting goes before the broker's: `log.segment.bytes` is for topics without a `segment.bytes`
of their own.

{reference.markdown()}"""


def connectors() -> Iterator[str]:
    """Yield the settings of the worker, of all connectors, and of the plugins of this distribution."""
    yield f"{_MADE}\n\n# Connect: all settings\n"
    yield "`millstream connect config PLUGIN` prints a plugin's. See also [connect.md](connect.md).\n"
    yield from _section("The worker", WorkerConfig)
    yield from _section("The REST interface", RestConfig)
    yield from _section("JsonConverter", JsonConverterConfig)
    yield from _section("AvroConverter", AvroConverterConfig)
    yield from _section("JsonSchemaConverter", JsonSchemaConverterConfig)
    yield from _section("ProtobufConverter", ProtobufConverterConfig)
    yield from _section("Every source", SourceConfig)
    yield from _section("Every sink", SinkConfig)
    points = distribution("millstream").entry_points.select(group=GROUP)
    for name in sorted(points.names):
        yield from _section(name, connector_class(name).CONFIG)


def command_line() -> Iterator[str]:
    """Yield the options that commands share, then each command of this distribution."""
    yield f"{_MADE}\n\n# The command line\n"
    yield "`millstream NOUN VERB --help` says the same in the terminal.\n"
    yield "## What commands share\n"
    yield "What talks to a cluster takes these, and finds the cluster by the first of them that says one;"
    yield "then by `MILLSTREAM_PROFILE`, `millstream profile use`, `KAFKA_BOOTSTRAP_SERVERS`, and at last"
    yield "`localhost:9092`. Data is on stdout, all else on stderr; bars are drawn on terminals only, and"
    yield "`NO_COLOR` is heeded.\n"
    group = typer.main.get_command(millstream)
    context = typer.Context(group)
    probe = group.get_command(context, "topic").commands["list"]
    yield from _parameters(each for each in probe.params if each.name in SHARED)
    yield "| exit status | |\n|---|---|"
    for status in Status:
        yield f"| {status.value} | {status.name.lower().replace('_', ' ')} |"
    yield ""
    for name in OWN:
        if name not in KAFKA_TOOLS:
            yield from _command(f"millstream {name}", group.get_command(context, name), 2)
    yield "## Kafka's tools\n"
    yield "By the names of Kafka's scripts, with their options, output and exit statuses: see"
    yield "[kafka-tools.md](kafka-tools.md).\n"
    yield "| command | |\n|---|---|"
    yield from (f"| `millstream {name}` | {each.help} |" for name, each in KAFKA_TOOLS.items())
    yield ""


def _command(path: str, command: Any, depth: int) -> Iterator[str]:
    """Yield a command and the commands below it."""
    yield f"{'#' * depth} {path}\n"
    yield " ".join((command.help or "").split()) + "\n"
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    if not hasattr(command, "commands"):
        words = [path, *(each.make_metavar(typer.Context(command)) for each in arguments), "[OPTIONS]"]
        yield f"`{' '.join(words)}`\n"
    yield from _parameters(each for each in command.params if each.name not in SHARED)
    if SHARED.keys() <= {each.name for each in command.params}:
        yield "It talks to a cluster.\n"
    for name, below in getattr(command, "commands", {}).items():
        yield from _command(f"{path} {name}", below, depth + 1)


def _parameters(parameters: Iterator[Any]) -> Iterator[str]:
    """Yield a table of the parameters that have a help text."""
    lines = []
    for each in parameters:
        if not (text := getattr(each, "help", None)):
            continue
        names = ", ".join(f"`{name}`" for name in [*each.opts, *each.secondary_opts])
        if each.param_type_name == "argument":
            names = f"`{each.make_metavar(typer.Context(typer.main.get_command(millstream)))}`"
        value = "" if getattr(each, "is_flag", False) or each.param_type_name == "argument" else _value(each)
        needed = " Needed." if each.required and each.param_type_name == "option" else ""
        lines.append(f"| {names}{value} | {text.replace('|', chr(92) + '|')}{needed} |")
    if lines:
        yield "| option | |\n|---|---|"
        yield from lines
        yield ""


def _value(option: Any) -> str:
    """Return the placeholder of an option's value, and its default if it has one."""
    shown = option.make_metavar(typer.Context(typer.main.get_command(millstream))).strip("<>")
    default = option.default
    has_default = default not in (None, "", (), []) and not callable(default)
    text = getattr(default, "value", default)
    return f" `{shown.replace('|', chr(92) + '|')}`" + (f" ({text})" if has_default else "")


def _section(title: str, declaration: type[Config]) -> Iterator[str]:
    yield f"## {title}\n"
    yield document(declaration)


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
