"""The settings of the commands: a properties file of Kafka Streams, overridden by options.

The cluster is chosen as by other commands, from the first of these that names one:

- `--bootstrap-server`;
- `bootstrap.servers` of `--override`, `--command-config`, `--profile` or `--config`, in this order;
- the profile of MILLSTREAM_PROFILE or `millstream profile use`;
- KAFKA_BOOTSTRAP_SERVERS;
- localhost:9092.

If `--config` names a cluster, that default profile is not read at all: its passwords are for its own cluster.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from kafka_client.errors import ConfigError
from kafka_client.java_properties import read_properties
from kafka_client.profiles import (
    DEFAULT_SERVERS,
    SERVERS,
    SERVERS_VARIABLE,
    default_profile,
    known_profiles,
    read_profile,
)
from streams.config import StreamsConfig

BootstrapServer = Annotated[
    str | None,
    typer.Option("--bootstrap-server", "-b", metavar="HOST:PORT[,HOST:PORT]", help="Brokers to ask."),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="A cluster named by `millstream profile set`.",
        autocompletion=lambda incomplete: [each for each in known_profiles() if each.startswith(incomplete)],
    ),
]
ApplicationId = Annotated[str | None, typer.Option(help="group id and prefix of internal topics")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="the application's properties file, as Kafka Streams takes it"),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        help="a file of settings by Kafka's names, such as security.protocol, ssl.*, sasl.*",
    ),
]
Override = Annotated[
    list[str] | None, typer.Option(help="a setting by Kafka's name, key=value; may be repeated")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """The options of a command line that decide its settings."""

    config: Path | None = None
    command_config: Path | None = None
    profile: str | None = None
    override: Sequence[str] | None = None
    bootstrap_server: str | None = None
    application_id: str | None = None
    is_local: bool = False
    """True if the command uses no cluster, so that no profile is read."""


def settings_of(command: CommandOptions) -> tuple[StreamsConfig, int]:
    """Return the settings and the number of workers; a later source overrides the earlier ones.

    Raises ConfigError for a profile that does not exist, and for a setting that cannot be used.
    """
    file = {} if command.config is None else read_properties(command.config, "--config")
    profile = _profile(command, file)
    properties: dict[str, Any] = {**file, **profile} if command.profile else {**profile, **file}
    if command.command_config is not None:
        properties |= read_properties(command.command_config, "--command-config")
    properties |= dict(_pair(each) for each in command.override or [])
    options = {SERVERS: command.bootstrap_server, "application.id": command.application_id}
    properties |= {key: value for key, value in options.items() if value is not None}
    properties[SERVERS] = properties.get(SERVERS) or os.environ.get(SERVERS_VARIABLE) or DEFAULT_SERVERS
    if not properties.get("application.id"):
        raise typer.BadParameter(
            "application.id is not known: give --application-id, or a file with it as --config"
        )
    workers = _workers(str(properties.pop("num.stream.threads", 1)))
    return StreamsConfig.from_properties(properties, foreign={*file, *profile}), workers


def _profile(command: CommandOptions, file: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the named or default profile, none if no profile applies."""
    if command.is_local:
        return {}
    name = command.profile or (None if file.get(SERVERS) else default_profile())
    return read_profile(name) if name else {}


def _workers(threads: str) -> int:
    if not threads.isdigit() or int(threads) < 1:
        raise ConfigError("num.stream.threads", threads, "a whole number, 1 or more: worker processes here")
    return int(threads)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not key=value")
    return key.strip(), value.strip()
