"""The set-up of a daemon's log, and the options of its command."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from kafka_client.logs.formats import LogFormat, formatter_for
from kafka_client.logs.levels import logger_named, parse_levels

LogLevels: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--log-level",
        metavar="[LOGGER=]LEVEL",
        help="The least level that is logged, of all loggers or of one and those below it: ERROR, WARN, "
        "INFO, DEBUG. Repeatable.",
    ),
]
LogForm: TypeAlias = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        envvar="MILLSTREAM_LOG_FORMAT",
        case_sensitive=False,
        help="auto: text on a terminal, otherwise JSON.",
    ),
]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The values of a command's options for its log."""

    levels: Sequence[str] | None = None
    """Each `LEVEL` or `LOGGER=LEVEL`."""
    form: LogFormat = LogFormat.AUTO

    def arguments(self) -> list[str]:
        """Return the options, for the command line of another process."""
        levels = [argument for level in self.levels or () for argument in ("--log-level", level)]
        return [*levels, "--log-format", self.form.value]


def log_to_stderr(
    options: LogOptions, *, default: str, fields: Mapping[str, Any] | None = None, mark: str = ""
) -> None:
    """Write the records of all loggers to stderr.

    ``default`` is the root's level unless an option says another. ``fields`` are those of all records in
    JSON, ``mark`` stands in all lines of text. Raises ConfigError for an unknown level.
    """
    levels = parse_levels(options.levels or (), default)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter_for(options.form, sys.stderr, fields=fields or {}, mark=mark))
    logging.getLogger().addHandler(handler)
    for name, level in levels.items():
        logger_named(name).setLevel(level)
