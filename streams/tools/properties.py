"""The settings of the commands: a properties file of Kafka Streams, and the options over it.

The cluster is found as other commands find it: by `--bootstrap-server`; by `bootstrap.servers` of
`--override`, `--command-config`, `--profile` or `--config`, in this order; by the profile of
MILLSTREAM_PROFILE or `millstream profile use`; by KAFKA_BOOTSTRAP_SERVERS; and else it is localhost:9092. The
profile that is taken where none is named has no effect where `--config` names a cluster: its passwords are
for its own.
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
class Given:
    """What a command line gives: files, options, and the profile that `--profile` names."""

    config: Path | None = None
    command_config: Path | None = None
    profile: str | None = None
    override: Sequence[str] | None = None
    bootstrap_server: str | None = None
    application_id: str | None = None
    is_local: bool = False
    """True if no cluster is asked: then no profile is looked for either."""


def settings_of(given: Given) -> tuple[StreamsConfig, int]:
    """Return the settings, a later source over those before it, and how many workers they want.

    Raises ConfigError for a profile that does not exist, and for a setting that cannot be used.
    """
    file = {} if given.config is None else read_properties(given.config, "--config")
    profile = _profile(given, file)
    properties: dict[str, Any] = {**file, **profile} if given.profile else {**profile, **file}
    if given.command_config is not None:
        properties |= read_properties(given.command_config, "--command-config")
    properties |= dict(_pair(each) for each in given.override or [])
    options = {SERVERS: given.bootstrap_server, "application.id": given.application_id}
    properties |= {key: value for key, value in options.items() if value is not None}
    properties[SERVERS] = properties.get(SERVERS) or os.environ.get(SERVERS_VARIABLE) or DEFAULT_SERVERS
    if not properties.get("application.id"):
        raise typer.BadParameter(
            "application.id is not known: give --application-id, or a file with it as --config"
        )
    workers = _workers(str(properties.pop("num.stream.threads", 1)))
    return StreamsConfig.from_properties(properties, foreign={*file, *profile}), workers


def _profile(given: Given, file: Mapping[str, str]) -> dict[str, str]:
    """The keys of the profile that counts, if one does."""
    if given.is_local:
        return {}
    name = given.profile or (None if file.get(SERVERS) else default_profile())
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
