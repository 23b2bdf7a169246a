"""`millstream consume`: records of topics on stdout, as kcat -C and kafka-console-consumer.sh print them."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from typing import Any, BinaryIO

import typer

from logd.client import Consumer, IsolationLevel, TopicPartition
from logd.client.properties import CONSUMER, ClientProperties
from millstream.consume import options
from millstream.consume.columns import RecordPrinter, TypedFields
from millstream.consume.filters import key_filter, parse_pattern
from millstream.consume.format_string import format_printer
from millstream.consume.forms import internal_printer, printer
from millstream.consume.positions import (
    Start,
    end_offsets,
    find_topics,
    offsets_at,
    parse_start,
    parse_time,
    select_partitions,
    starting_offsets,
)
from millstream.consume.reading import Reading
from millstream.consume.source import GroupSource, Source
from millstream.data_types.escapes import unescaped
from millstream.data_types.find import SchemaOptions, find_type
from millstream.data_types.names import TypeName
from millstream.terminal.command import command
from millstream.terminal.output import Format
from millstream.terminal.progress import Progress
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read. `until_ms`: end before this time; `to_end`: end where the partitions end now."""

    topics: list[str]
    include: re.Pattern[str] | None
    partitions: list[int]
    start: Start | None
    until_ms: int | None
    to_end: bool
    isolation: IsolationLevel


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
    key_type: options.KeyType = TypeName.STRING,
    value_type: options.ValueType = TypeName.STRING,
    header_type: options.HeaderType = TypeName.STRING,
    null_marker: options.Null = "",
    key: options.Key = None,
    key_pattern: options.KeyPattern = None,
    isolation_level: options.Isolation = "read_uncommitted",
    skip_errors: options.SkipErrors = False,
    schema_registry: options.Registry = None,
    key_schema: options.KeySchema = None,
    value_schema: options.ValueSchema = None,
    key_message: options.KeyMessage = None,
    value_message: options.ValueMessage = None,
) -> None:
    """Print records of topics: lines of values, a format of your own, or JSON lines (-o json).

    Begins with what comes from now on; with -e at the beginning.
    """
    if formatter and (format_string or session.form is not Format.TABLE):
        raise UsageError("--formatter is a form of its own: leave -f and -o out")
    if format_string is not None and session.form is not Format.TABLE:
        raise UsageError("give -f or -o, not both")
    schemas = (
        SchemaOptions(schema_registry, key_schema, key_message),
        SchemaOptions(schema_registry, value_schema, value_message),
    )
    fields = TypedFields(
        find_type(key_type, schemas[0]),
        find_type(value_type, schemas[1]),
        find_type(header_type, SchemaOptions()),
        unescaped(null_marker),
    )
    render = _printer(session.form, format_string, formatter, fields)
    keep = key_filter(key, key_pattern, fields.key)
    now_ms = time.time_ns() // 1_000_000
    since_ms = None if since is None else parse_time(since, "--since", now_ms)
    wanted = Wanted(
        topics=topics or [],
        include=None if include is None else parse_pattern(include, "--include"),
        partitions=partition or [],
        start=parse_start(offset, from_beginning, last, since_ms),
        until_ms=None if until is None else parse_time(until, "--until", now_ms),
        to_end=exit_at_end,
        isolation=isolation_level,
    )
    if bool(topics) == (include is not None):
        raise UsageError("name topics, or give --include" + (": not both" if topics else ""))
    source = await (_alone(session, wanted) if group is None else _member(session, wanted, group))
    try:
        reading = Reading(
            source, render, _stdout(), session.tell, keep, max_messages, timeout_ms, skip_errors
        )
        await _run(session, reading)
    finally:
        await source.close()


async def _run(session: Session, reading: Reading) -> None:
    """With a bar, unless the records themselves go to the terminal."""
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


async def _alone(session: Session, wanted: Wanted) -> Source:
    """Without a group: from where the options say, or the end."""
    admin, isolation = session.admin, wanted.isolation
    topics = await find_topics(session.client, wanted.topics, wanted.include)
    found = (await session.client.metadata(topics)).partitions(topics)
    tps = select_partitions(found, wanted.partitions)
    bounded = wanted.to_end or wanted.until_ms is not None
    start = wanted.start or Start("earliest" if bounded else "latest")
    positions = await starting_offsets(admin, tps, start, isolation)
    ends: dict[TopicPartition, int] | None = None
    if wanted.until_ms is not None:
        ends = await offsets_at(admin, tps, wanted.until_ms, isolation)
    elif wanted.to_end:
        ends = await end_offsets(admin, tps, isolation)
    if ends is not None:
        # What ends before it begins is not read at all.
        positions = {tp: offset for tp, offset in positions.items() if offset < ends[tp]}
        ends = {tp: ends[tp] for tp in positions}
    # An offset that was asked for has to be there; records that retention takes meanwhile are passed over.
    reset = "none" if start.kind == "offset" else "earliest"
    consumer = Consumer(session.client, **_settings(session, wanted, reset))
    await consumer.assign(positions)
    return Source(consumer, ends)


async def _member(session: Session, wanted: Wanted, group: str) -> Source:
    """As a group's member: from its offsets, and where it has none from the end, or the beginning."""
    kind = wanted.start.kind if wanted.start else "earliest" if wanted.to_end else "latest"
    if kind not in ("earliest", "latest") or wanted.partitions or wanted.until_ms is not None:
        raise UsageError(
            "with --group the group's own offsets and shares are read: leave --offset N, --last, --since, "
            "--until and --partition out"
        )
    if wanted.include is None:
        await find_topics(session.client, wanted.topics, None)
    consumer = Consumer(session.client, group, **_settings(session, wanted, kind))
    source = GroupSource(consumer, session.admin, to_end=wanted.to_end, isolation=wanted.isolation)
    try:
        return await source.join(wanted.include or wanted.topics)
    except BaseException:
        await source.close()
        raise


def _settings(session: Session, wanted: Wanted, reset: str) -> dict[str, Any]:
    """The consumer's keys of --command-config; what the options say is over them."""
    given = ClientProperties.layered(session.servers.properties, "").consumer()
    return {**given, "isolation_level": wanted.isolation, "auto_offset_reset": reset}


def _stdout() -> BinaryIO:
    sys.stdout.flush()
    return sys.stdout.buffer
