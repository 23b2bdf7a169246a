"""The commands for authors: `millstream connect new`, `lint`, `test` and `dry-run`."""

from __future__ import annotations

import asyncio
import logging
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from connect.authoring.dry_run import dry_run
from connect.authoring.lint import errors_of
from connect.authoring.new_plugin import write_plugin
from connect.authoring.pipeline_file import read_pipeline_file
from connect.authoring.pipeline_test import run_tests
from connect.config import read_config_file
from connect.errors import MillstreamError
from connect.runtime.worker_config import WorkerConfig

app = typer.Typer()


class _Role(StrEnum):
    SOURCE = "source"
    SINK = "sink"


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="the module's name, as order_book")],
    role: Annotated[_Role, typer.Option("--type", help="the direction: into the log, or out of it")],
    folder: Annotated[Path, typer.Option(help="where the files are written")] = Path(),
) -> None:
    """Write a new plugin: a typed connector, its test with the conformance suite, and a config."""
    try:
        paths = write_plugin(name, role.value, folder)
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    for path in paths:
        typer.echo(path)
    typer.echo(f"Test it: python -m pytest {paths[1]}", err=True)


@app.command()
def lint(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="one file per connector")],
    worker_file: Annotated[
        Path | None, typer.Option("--worker", help="the worker's file, for its converters and policies")
    ] = None,
) -> None:
    """Check connectors' files without a broker or worker: all errors, and keys without effect.

    The exit status is 1 if a config is not valid, and 2 if a file cannot be read.
    """
    logging.basicConfig(format="%(message)s")  # the check logs keys without effect
    sys.path.insert(0, "")
    failures = 0
    try:
        worker = WorkerConfig.parse({} if worker_file is None else read_config_file(worker_file))
        for path in files:
            errors = errors_of(worker, read_config_file(path))
            failures += bool(errors)
            typer.echo(f"{'FAILED' if errors else 'ok':<7}{path}")
            for error in errors:
                typer.echo(f"       {error}")
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    raise typer.Exit(1 if failures else 0)


@app.command()
def test(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML files of pipeline tests")],
) -> None:
    """Test pipelines without a broker: records in, the records expected behind converters and transforms.

    The exit status is 1 if a test fails, and 2 if a file or config is not valid.
    """
    sys.path.insert(0, "")  # connectors and transforms of the current folder, as under `standalone`
    failures = 0
    for path in files:
        try:
            for result in run_tests(read_pipeline_file(path)):
                failures += bool(result.differences)
                typer.echo(f"{'FAILED' if result.differences else 'ok':<7}{path}: {result.name}")
                for difference in result.differences:
                    typer.echo(f"       {difference}")
        except MillstreamError as e:
            typer.echo(f"millstream connect: {path}: {e}", err=True)
            raise typer.Exit(2) from e
    raise typer.Exit(1 if failures else 0)


@app.command("dry-run")
def dry_run_command(
    worker_file: Annotated[Path, typer.Argument(metavar="WORKER", help="worker.properties or .json")],
    connector_files: Annotated[
        list[Path], typer.Argument(metavar="CONNECTOR...", help="one file per connector")
    ],
    timeout: Annotated[float, typer.Option(min=0.1, help="seconds for each step")] = 20,
) -> None:
    """Try what a connector's start needs, and write nothing: config, brokers, topics, the other system.

    The exit status is 1 if a step fails, and 2 if a file cannot be read.
    """
    sys.path.insert(0, "")
    try:
        worker = WorkerConfig.parse(read_config_file(worker_file))
        configs = [(path, read_config_file(path)) for path in connector_files]
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(2) from e
    raise typer.Exit(1 if asyncio.run(_dry_run(worker, configs, timeout)) else 0)


async def _dry_run(worker: WorkerConfig, configs: list[tuple[Path, dict[str, Any]]], timeout: float) -> bool:
    """Print each connector's findings. Return True if one of them is a failure."""
    has_failed = False
    for path, config in configs:
        async for finding in dry_run(worker, config, timeout=timeout):
            has_failed = has_failed or finding.state == "failed"
            typer.echo(f"{finding.state:<10}{path}: {finding.subject}: {finding.text}")
    return has_failed
