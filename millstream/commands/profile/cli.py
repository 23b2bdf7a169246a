"""`millstream profile`: clusters by name, with the settings it takes to talk to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kafka_client.profiles import (
    SERVERS,
    default_profile,
    delete_profile,
    known_profiles,
    make_default,
    read_profile,
    write_profile,
)
from millstream.terminal.command import local_command
from millstream.terminal.completion import complete_profiles
from millstream.terminal.session import Local
from millstream.terminal.status import UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True)

Known = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_profiles)]


@app.callback()
def _options() -> None:
    """Named clusters with their security settings, for --profile."""


@local_command(app, "set")
def set_profile(
    local: Local,
    *,
    name: Known,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE...]", help="Kafka's client keys.")
    ] = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option("--bootstrap-server", "-b", metavar="HOST:PORT[,HOST:PORT]", help="Brokers to ask."),
    ] = None,
    command_config: Annotated[
        Path | None,
        typer.Option("--command-config", metavar="FILE", help="Properties to begin with, as Kafka's."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="KEY", help="Take a key out; repeatable.")
    ] = None,
) -> None:
    """Make a profile, or change keys of one. For a secret use --command-config: shells remember lines."""
    from kafka_client.java_properties import read_properties
    from millstream.commands.config.keys import read_settings
    from millstream.commands.profile.check import check

    changes = {} if command_config is None else read_properties(command_config, "--command-config")
    changes |= read_settings(settings or [], "KEY=VALUE")
    if bootstrap_server is not None:
        changes[SERVERS] = bootstrap_server
    if not changes and not remove:
        raise UsageError("nothing to set: give --bootstrap-server, KEY=VALUE or --command-config")
    properties = {**(read_profile(name) if name in known_profiles() else {}), **changes}
    for key in remove or ():
        properties.pop(key, None)
    check(properties)
    write_profile(name, properties)
    local.tell(f"{name}: written")


@local_command(app, "list")
def list_profiles(local: Local) -> None:
    """List the profiles, and which one is the default."""
    default = default_profile()
    local.show(
        (
            {
                "profile": name,
                "bootstrap_server": (properties := read_profile(name)).get(SERVERS),
                "security_protocol": properties.get("security.protocol", "PLAINTEXT"),
                "default": name == default,
            }
            for name in known_profiles()
        ),
        ("profile", "bootstrap_server", "security_protocol", "default"),
    )


@local_command(app)
def show(local: Local, *, name: Known) -> None:
    """Show a profile's keys, with secrets hidden."""
    from millstream.commands.profile.check import without_secrets

    rows = [
        {"key": key, "value": value} for key, value in sorted(without_secrets(read_profile(name)).items())
    ]
    local.show(rows, ("key", "value"))


@local_command(app)
def use(
    local: Local,
    *,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", autocompletion=complete_profiles)] = None,
    none: Annotated[bool, typer.Option("--none", help="Take no profile where none is named.")] = False,
) -> None:
    """Have a profile taken where none is named."""
    if (name is None) != none:
        raise UsageError("which one? Give a profile's name, or --none")
    if name is not None:
        read_profile(name)
    make_default(name)
    local.tell("no profile is taken unless it is named" if name is None else f"{name}: taken from now on")


@local_command(app)
def delete(
    local: Local,
    *,
    name: Known,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a profile."""
    read_profile(name)
    local.confirm(f"Delete profile {name}?", yes=yes)
    delete_profile(name)
    local.tell(f"{name}: deleted")
