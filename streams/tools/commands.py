"""The commands ``millstream streams reset|lag|state``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from kafka_client import Client
from kafka_client.errors import ConfigError, MillstreamError
from streams.config import StreamsConfig
from streams.tools.properties import (
    ApplicationId,
    BootstrapServer,
    CommandConfig,
    CommandOptions,
    ConfigFile,
    Override,
    Profile,
    settings_of,
)
from streams.tools.reset import Reset
from streams.tools.reset import reset as reset_application
from streams.tools.status import Row, lag_rows, state_rows
from streams.tools.targets import Target

T = TypeVar("T")


class Form(StrEnum):
    """The output format of rows."""

    TABLE = "table"
    JSON = "json"


FormOption = Annotated[Form, typer.Option("--format", help="a table, or a JSON object a line")]


def reset(
    bootstrap_server: BootstrapServer = None,
    application_id: ApplicationId = None,
    config: ConfigFile = None,
    command_config: CommandConfig = None,
    profile: Profile = None,
    input_topics: Annotated[str, typer.Option(help="its inputs, divided by commas: these are moved")] = "",
    intermediate_topics: Annotated[
        str, typer.Option(help="topics it writes and reads, divided by commas: moved to their ends")
    ] = "",
    internal_topics: Annotated[
        str, typer.Option(help="of its internal topics those to delete, divided by commas; all unless given")
    ] = "",
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="the default")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest")] = False,
    to_offset: Annotated[int | None, typer.Option()] = None,
    to_datetime: Annotated[str | None, typer.Option(help="as 2013-01-31T12:00:00.000; UTC")] = None,
    by_duration: Annotated[str | None, typer.Option(help="so long ago, as PT1H30M or P7D")] = None,
    shift_by: Annotated[int | None, typer.Option(help="from the committed offsets; may be negative")] = None,
    from_file: Annotated[Path | None, typer.Option(help="lines of topic,partition,offset")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be done")] = False,
    force: Annotated[bool, typer.Option("--force", help="remove members that are left over")] = False,
) -> None:
    """Reset an application, as kafka-streams-application-reset does. Stop all instances before."""

    async def work(client: Client, settings: StreamsConfig) -> bool:
        request = Reset(
            application_id=settings.application_id,
            inputs=_listed(input_topics),
            intermediates=_listed(intermediate_topics),
            internal=_listed(internal_topics),
            target=Target(
                to_earliest=to_earliest,
                to_latest=to_latest,
                to_offset=to_offset,
                to_datetime=to_datetime,
                by_duration=by_duration,
                shift_by=shift_by,
                from_file=from_file,
            ),
            dry_run=dry_run,
            force=force,
        )
        return await reset_application(client, request, typer.echo, lambda text: typer.echo(text, err=True))

    options = CommandOptions(
        config=config,
        command_config=command_config,
        profile=profile,
        bootstrap_server=bootstrap_server,
        application_id=application_id,
    )
    if not _with_client(work, options):
        raise typer.Exit(1)


def lag(
    bootstrap_server: BootstrapServer = None,
    application_id: ApplicationId = None,
    config: ConfigFile = None,
    command_config: CommandConfig = None,
    profile: Profile = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Say how many records lie between an application's committed positions and the ends of its inputs."""

    async def work(client: Client, settings: StreamsConfig) -> list[Row]:
        return await lag_rows(client, settings.application_id)

    options = CommandOptions(
        config=config,
        command_config=command_config,
        profile=profile,
        bootstrap_server=bootstrap_server,
        application_id=application_id,
    )
    rows = _with_client(work, options)
    _print(rows, ("topic", "partition", "committed", "end", "lag"), form)


def state(
    application_id: ApplicationId = None,
    config: ConfigFile = None,
    override: Override = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Say what is in an application's state folders here: tasks, stores, sizes, checkpoints.

    What a running instance has not flushed to the disk yet is not seen.
    """
    try:
        options = CommandOptions(
            config=config, override=override, application_id=application_id, is_local=True
        )
        settings, _ = settings_of(options)
        columns = ("folder", "task", "store", "bytes", "keys", "checkpoint", "as_of", "problem")
        _print(state_rows(settings), columns, form)
    except MillstreamError as error:
        end(error)


def _with_client(
    work: Callable[[Client, StreamsConfig], Awaitable[T]],
    options: CommandOptions,
) -> T:
    try:
        settings, _ = settings_of(options)

        async def connected() -> T:
            async with Client(settings.bootstrap_servers, **settings.client) as client:
                return await work(client, settings)

        return asyncio.run(connected())
    except MillstreamError as error:
        end(error)


def end(error: MillstreamError) -> NoReturn:
    """Print the error and exit: with status 2 for a wrong setting, 1 for any other error."""
    typer.echo(f"streams: {error}", err=True)
    raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from None


def _listed(topics: str) -> list[str]:
    return list(dict.fromkeys(topic.strip() for topic in topics.split(",") if topic.strip()))


def _print(rows: Iterable[Row], columns: tuple[str, ...], form: Form) -> None:
    if form is Form.JSON:
        for row in rows:
            typer.echo(json.dumps(row))
        return
    lines = [[_text(row.get(column)) for column in columns] for row in rows]
    shown = [n for n in range(len(columns)) if n < len(columns) - 1 or any(line[n] != "-" for line in lines)]
    table = [[column.upper() for column in columns], *lines]
    widths = [max(len(line[n]) for line in table) for n in range(len(columns))]
    for line in table:
        typer.echo("  ".join(line[n].ljust(widths[n]) for n in shown).rstrip())


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
