"""`millstream connect apply`, `diff` and `validate`: connectors' files against a worker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from connect.cli.output import print_json, print_table
from connect.cli.remote import DEFAULT_URL, AsJson, Refused, RemoteWorker, Url, told_errors
from connect.config import read_config_file
from connect.errors import ConfigError

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="one file per connector, .properties or .json")
]
_SECRET = re.compile(r"password|secret|token|credential|jaas|api\.?key|private\.?key", re.IGNORECASE)


def apply(files: Files, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Create the files' connectors, or change those whose config differs.

    The exit status is 1 if the worker refuses one; the others are applied nevertheless.
    """
    results: list[dict[str, str]] = []
    with told_errors():
        worker = RemoteWorker(url)
        for name, config in _configs(files):
            current = worker.config(name)
            result = "unchanged"
            if current is None or _plain(current) != config:
                try:
                    worker.call("PUT", "connectors", name, "config", body=config)
                    result = "created" if current is None else "changed"
                except Refused as e:
                    result = "refused"
                    typer.echo(f"millstream connect: {name}: {e}", err=True)
            results.append({"name": name, "result": result})
            if not as_json:
                typer.echo(f"{name} {result}")
    if as_json:
        print_json(results)
    if any(each["result"] == "refused" for each in results):
        raise typer.Exit(1)


def diff(files: Files, url: Url = DEFAULT_URL) -> None:
    """Show what `apply` would change. The exit status is 1 if it would change something.

    Values of keys that look like those of secrets are not shown.
    """
    differs = False
    with told_errors():
        worker = RemoteWorker(url)
        for name, config in _configs(files):
            current = worker.config(name)
            lines = _lines({} if current is None else _plain(current), config)
            if lines:
                differs = True
                typer.echo(f"{name}: {'does not exist' if current is None else 'differs'}")
                for line in lines:
                    typer.echo(f"  {line}")
    if differs:
        raise typer.Exit(1)


def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a connector's file")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Check a connector's file at a worker, without creating it; errors give exit status 1."""
    with told_errors():
        [(_, config)] = _configs([file])
        plugin = config.get("connector.class")
        if plugin is None:
            raise ConfigError("connector.class", "", f"is required; {file} does not have it")
        path = ("connector-plugins", plugin, "config", "validate")
        report: dict[str, Any] = RemoteWorker(url).call("PUT", *path, body=config)
    if as_json:
        print_json(report)
    elif report["error_count"]:
        values = [each["value"] for each in report["configs"]]
        print_table(("key", "error"), ((v["name"], error) for v in values for error in v["errors"]))
    else:
        typer.echo("no errors")
    if report["error_count"]:
        raise typer.Exit(1)


def _configs(files: list[Path]) -> list[tuple[str, dict[str, str]]]:
    """Return name and config of each file. Raises ConfigError for a missing name, or for two of one."""
    configs: dict[str, dict[str, str]] = {}
    for file in files:
        config = _plain(read_config_file(file))
        name = config.get("name")
        if not name:
            raise ConfigError("name", "", f"is required; {file} does not have it")
        if name in configs:
            raise ConfigError("name", name, f"is in two files; the second is {file}")
        configs[name] = config
    return list(configs.items())


def _plain(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a config's values as texts, as a worker stores them."""
    return {key: _text(value) for key, value in config.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)


def _lines(current: Mapping[str, str], config: Mapping[str, str]) -> list[str]:
    lines = []
    for key in sorted(current.keys() | config.keys()):
        old, new = current.get(key), config.get(key)
        if old == new:
            continue
        hidden = _SECRET.search(key) is not None
        for sign, value in (("-", old), ("+", new)):
            if value is not None:
                lines.append(f"{sign} {key}={'[hidden]' if hidden else value}")
    return lines
