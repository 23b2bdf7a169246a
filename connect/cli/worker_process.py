"""The settings and output lines that the commands that run a worker share."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from connect.config import read_config_file
from kafka_client.http.address import check_address

Http: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="serve the REST interface there: listeners=http://HOST:PORT"),
]


def worker_settings(file: Path, overrides: Sequence[str] | None, http: str | None) -> dict[str, Any]:
    """Return a worker's settings: those of the file, of `key=value` in `overrides`, and of `--http`.

    Raises ConfigError for a file that cannot be read or an address that is not host:port, and
    typer.BadParameter for an override without `=`.
    """
    settings = {**read_config_file(file), **dict(map(_pair, overrides or ()))}
    if http is not None:
        check_address("--http", http)
        settings["listeners"] = f"http://{http}"
    return settings


def say(event: str, **facts: Any) -> None:
    """Write a line of JSON to stdout, for the program that has started the worker."""
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"{text!r} is not key=value")
    return key.strip(), value.strip()
