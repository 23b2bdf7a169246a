"""`millstream connect plugins` and `config`: what is installed here, or at a worker."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from connect.cli.output import print_json, print_table
from connect.cli.remote import AsJson, RemoteWorker, told_errors
from connect.config import SinkConfig, SourceConfig, document, read_config_file, validate
from connect.config.plugin_path import PLUGIN_PATH
from connect.errors import MillstreamError
from connect.runtime import connector_class, connector_type, list_plugins
from connect.runtime.plugins import registered_names


def _complete_plugins(incomplete: str) -> list[str]:
    """Return the plugin names that start with `incomplete`, for the shell's completion."""
    return sorted(name for name in registered_names() if name.startswith(incomplete))


def plugins(
    url: Annotated[str | None, typer.Option(help="ask the worker at this REST address instead")] = None,
    all_kinds: Annotated[
        bool, typer.Option("--all", help="with --url: converters, transforms and predicates too")
    ] = False,
    as_json: AsJson = False,
    plugin_path: Annotated[
        list[str] | None, typer.Option(metavar="FOLDER", help="plugins of this folder too, as in plugin.path")
    ] = None,
) -> None:
    """List connector plugins with location and version; one that cannot be loaded with its error."""
    if url is None:
        PLUGIN_PATH.use(plugin_path or [])
        for plugin in list_plugins():
            typer.echo(json.dumps(plugin))
        return
    with told_errors():
        query = {"connectorsOnly": "false" if all_kinds else "true"}
        listed: list[dict[str, Any]] = RemoteWorker(url).call("GET", "connector-plugins", query=query)
    if as_json:
        print_json(listed)
    else:
        shown = ("class", "type", "version", "location")
        print_table(shown, ([plugin.get(key) for key in shown] for plugin in listed))


def show_config(
    plugin: Annotated[
        str,
        typer.Argument(metavar="PLUGIN", help="as in connector.class", autocompletion=_complete_plugins),
    ],
    check: Annotated[Path | None, typer.Option(metavar="FILE", help="validate this connector file")] = None,
) -> None:
    """Show a plugin's settings, or validate a connector's config; errors give exit status 1."""
    find_own_modules()
    try:
        plugin_class = connector_class(plugin)
        declaration = plugin_class.CONFIG
        if check is None:
            typer.echo(document(declaration))
            return
        common = SourceConfig if connector_type(plugin_class) == "source" else SinkConfig
        declarations = [declaration] if issubclass(declaration, common) else [common, declaration]
        report = validate(plugin, declarations, read_config_file(check))
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    typer.echo(json.dumps(report, indent=2))
    raise typer.Exit(1 if report["error_count"] else 0)


def find_own_modules() -> None:
    """Make modules in the current folder importable as `connector.class`, as under `python -m`."""
    sys.path.insert(0, "")
