"""The settings of the commands: a properties file of Kafka Streams, and the options over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from logd.config.properties import read_properties
from logd.errors import ConfigError
from streams.config import StreamsConfig

BootstrapServer = Annotated[str | None, typer.Option(help="host:port[,host:port]")]
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


def settings_of(
    config: Path | None,
    command_config: Path | None,
    override: Sequence[str] | None,
    bootstrap_server: str | None,
    application_id: str | None,
) -> tuple[StreamsConfig, int]:
    """The settings, a later source over those before it, and how many workers they want."""
    file = {} if config is None else read_properties(config, "--config")
    properties: dict[str, Any] = dict(file)
    if command_config is not None:
        properties |= read_properties(command_config, "--command-config")
    properties |= dict(_pair(each) for each in override or [])
    options = {"bootstrap.servers": bootstrap_server, "application.id": application_id}
    properties |= {key: value for key, value in options.items() if value is not None}
    for key, option in (("bootstrap.servers", "--bootstrap-server"), ("application.id", "--application-id")):
        if not properties.get(key):
            raise typer.BadParameter(f"{key} is not known: give {option}, or a file with it as --config")
    workers = _workers(str(properties.pop("num.stream.threads", 1)))
    return StreamsConfig.from_properties(properties, foreign=file), workers


def _workers(threads: str) -> int:
    if not threads.isdigit() or int(threads) < 1:
        raise ConfigError("num.stream.threads", threads, "a whole number, 1 or more: worker processes here")
    return int(threads)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not key=value")
    return key.strip(), value.strip()
