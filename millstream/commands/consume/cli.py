"""`millstream consume`: records of topics on stdout, as kcat -C and kafka-console-consumer.sh print them."""

from __future__ import annotations

import sys
import time
from typing import BinaryIO

import typer

from kafka_client.properties import CONSUMER, ClientProperties
from millstream.commands.consume import options
from millstream.commands.consume.columns import RecordPrinter, TypedFields
from millstream.commands.consume.filters import key_filter, parse_pattern
from millstream.commands.consume.format_string import format_printer
from millstream.commands.consume.forms import internal_printer, printer
from millstream.commands.consume.opening import ReadRequest, open_source
from millstream.commands.consume.positions import parse_start, parse_time
from millstream.commands.consume.reading import Reading
from millstream.data_types import options as type_options
from millstream.data_types.escapes import unescaped
from millstream.data_types.find import find_type
from millstream.data_types.names import TypeName
from millstream.data_types.schema_options import SchemaOptions
from millstream.terminal.command import command
from millstream.terminal.output import Format
from millstream.terminal.progress import Progress
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError

app = typer.Typer(add_completion=False)


@command(app, "consume", effective=tuple(CONSUMER))
async def consume(
    session: Session,
    *,
    topics: options.Topics = None,
    include: options.Include = None,
    group: options.Group = None,
    partition: options.Partitions = None,
    from_beginning: options.FromBeginning = False,
    offset: options.Offset = None,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    exit_at_end: options.Exit = False,
    max_messages: options.MaxMessages = None,
    timeout_ms: options.TimeoutMs = None,
    format_string: options.FormatString = None,
    formatter: options.Formatter = None,
    key_type: type_options.KeyType = TypeName.STRING,
    value_type: type_options.ValueType = TypeName.STRING,
    header_type: type_options.HeaderType = TypeName.STRING,
    null_marker: options.Null = "",
    key: options.Key = None,
    key_pattern: options.KeyPattern = None,
    isolation_level: options.Isolation = None,
    skip_errors: options.SkipErrors = False,
    schema_registry: type_options.Registry = None,
    key_schema: type_options.KeySchema = None,
    value_schema: type_options.ValueSchema = None,
    key_message: type_options.KeyMessage = None,
    value_message: type_options.ValueMessage = None,
) -> None:
    """Print records of topics: lines of values, a format of your own, or JSON lines (-o json).

    Begins with what comes from now on; with -e at the beginning.
    """
    if formatter and (format_string or session.form is not Format.TABLE):
        raise UsageError("--formatter is a form of its own: leave -f and -o out")
    if format_string is not None and session.form is not Format.TABLE:
        raise UsageError("give -f or -o, not both")
    fields = TypedFields(
        find_type(key_type, SchemaOptions(schema_registry, key_schema, key_message)),
        find_type(value_type, SchemaOptions(schema_registry, value_schema, value_message)),
        find_type(header_type, SchemaOptions()),
        unescaped(null_marker),
    )
    render = _printer(session.form, format_string, formatter, fields)
    keep = key_filter(key, key_pattern, fields.key)
    properties = ClientProperties.layered(session.servers.properties, "").consumer()
    now_ms = time.time_ns() // 1_000_000
    since_ms = None if since is None else parse_time(since, "--since", now_ms)
    requested = ReadRequest(
        topics=topics or [],
        include=None if include is None else parse_pattern(include, "--include"),
        partitions=partition or [],
        start=parse_start(offset, from_beginning, last, since_ms),
        until_ms=None if until is None else parse_time(until, "--until", now_ms),
        to_end=exit_at_end,
        isolation=isolation_level or properties.get("isolation_level", "read_uncommitted"),
    )
    if bool(topics) == (include is not None):
        raise UsageError("name topics, or give --include" + (": not both" if topics else ""))
    source = await open_source(session, requested, group)
    try:
        reading = Reading(
            source, render, _stdout(), session.tell, keep, max_messages, timeout_ms, skip_errors
        )
        await _run(session, reading)
    finally:
        await source.close()


async def _run(session: Session, reading: Reading) -> None:
    """Run the loop with a progress bar, unless the records themselves go to the terminal."""
    if sys.stdout.isatty():
        await reading.run(Progress(None))
        return
    with session.progress("consumed", reading.source.remaining, unit="records") as progress:
        await reading.run(progress)


def _printer(form: Format, text: str | None, formatter: str | None, fields: TypedFields) -> RecordPrinter:
    if text is not None:
        return format_printer(text, fields)
    if formatter is None:
        return printer(form, fields)
    from millstream.data_types.internal import FORMATTERS, internal_reader

    try:
        return internal_printer(internal_reader(formatter))
    except KeyError:
        raise UsageError(f"--formatter {formatter!r}: one of {', '.join(FORMATTERS)}") from None


def _stdout() -> BinaryIO:
    sys.stdout.flush()
    return sys.stdout.buffer
