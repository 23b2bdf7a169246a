"""`millstream produce`: records from lines, JSON lines and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from logd.client import BatchProducer, TransactionalProducer
from logd.client.properties import PRODUCER, ClientProperties
from logd.records import Headers
from millstream.data_types.data_type import DataType, WrongData
from millstream.data_types.escapes import unescaped
from millstream.data_types.find import SchemaOptions, find_type
from millstream.data_types.names import TypeName
from millstream.produce import options
from millstream.produce.json_format import JsonFormat
from millstream.produce.line_format import LineFormat, parse_header
from millstream.produce.options import Input
from millstream.produce.producing import Producing, Source
from millstream.produce.sending import Sender
from millstream.produce.source import FileSource, LineSource, RecordFormat
from millstream.terminal.command import command
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, UsageError

app = typer.Typer(add_completion=False)

MINUTE_MS = 60_000
_TRANSACTIONS_OWN = ("acks", "enable_idempotence")
"""A transaction needs both, so it has no such arguments."""


@command(app, "produce", effective=tuple(PRODUCER))
async def produce(
    session: Session,
    *,
    topic: options.Topic,
    files: options.Files = None,
    input_form: options.InputForm = Input.LINES,
    key_separator: options.KeySeparator = None,
    headers_separator: options.HeadersSeparator = None,
    delimiter: options.Delimiter = "\\n",
    key: options.Key = None,
    header: options.Header = None,
    partition: options.Partition = None,
    null_marker: options.NullMarker = None,
    key_type: options.KeyType = TypeName.STRING,
    value_type: options.ValueType = TypeName.STRING,
    header_type: options.HeaderType = TypeName.STRING,
    compression_type: options.Compression = None,
    acks: options.Acks = None,
    transactional_id: options.TransactionalId = None,
    transaction_timeout_ms: options.TransactionTimeoutMs = MINUTE_MS,
    skip_errors: options.SkipErrors = False,
    schema_registry: options.Registry = None,
    key_schema: options.KeySchema = None,
    value_schema: options.ValueSchema = None,
    key_schema_id: options.KeySchemaId = None,
    value_schema_id: options.ValueSchemaId = None,
    key_message: options.KeyMessage = None,
    value_message: options.ValueMessage = None,
) -> None:
    """Write records to a topic: a value a line from stdin or files, JSON lines, or a record a file."""
    types = (
        find_type(key_type, SchemaOptions(schema_registry, key_schema, key_message, key_schema_id)),
        find_type(value_type, SchemaOptions(schema_registry, value_schema, value_message, value_schema_id)),
        find_type(header_type, SchemaOptions()),
    )
    null = None if null_marker is None else unescaped(null_marker)
    separators = tuple(
        None if each is None else unescaped(each) for each in (key_separator, headers_separator)
    )
    _check(input_form, files or [], delimiter, separators, null)
    make = _format(input_form, types, _key(key, types[0]), _headers(header or [], types[2]), separators, null)
    source = _source(input_form, files or [], unescaped(delimiter), make, skip_errors)
    count = await _partition_count(session, topic, partition)
    settings = ClientProperties.layered(session.servers.properties, "").producer()
    if acks is not None:
        settings["acks"] = -1 if acks == "all" else int(acks)
    if compression_type is not None:
        settings["compression_type"] = compression_type
    unit = "records" if source.total is None else "bytes"
    with session.progress("produced", source.total, unit=unit) as progress:
        if transactional_id is None:
            async with BatchProducer(session.client, **settings) as producer:
                sender = Sender(producer, topic, count, partition)
                run = Producing(source, sender, session.tell, skip_errors=skip_errors)
                await run.plainly(producer, progress)
            return
        if settings.get("acks", -1) != -1:
            raise UsageError("--transactional-id needs --acks all: leave --acks out")
        given = {name: value for name, value in settings.items() if name not in _TRANSACTIONS_OWN}
        async with TransactionalProducer(
            session.client, transactional_id, transaction_timeout_ms=transaction_timeout_ms, **given
        ) as transactional:
            sender = Sender(transactional, topic, count, partition)
            run = Producing(source, sender, session.tell, skip_errors=skip_errors)
            await run.in_transaction(transactional, progress)


def _check(
    form: Input,
    files: list[Path],
    delimiter: str,
    separators: tuple[bytes | None, ...],
    null: bytes | None,
) -> None:
    """UsageError for options that do not go together."""
    if not delimiter or b"" in separators:
        raise UsageError("--delimiter, --key-separator and --headers-separator cannot be empty")
    if form is not Input.LINES and any(each is not None for each in separators):
        raise UsageError(f"--key-separator and --headers-separator are for lines, not for -i {form}")
    if form is Input.JSON and null is not None:
        raise UsageError("-i json has a null of its own: leave --null-marker out")
    if form is Input.FILES and not files:
        raise UsageError("-i files needs the files, each the value of one record")


def _format(
    form: Input,
    types: tuple[DataType, DataType, DataType],
    key: bytes | None,
    headers: Headers,
    separators: tuple[bytes | None, ...],
    null: bytes | None,
) -> RecordFormat:
    shared: dict[str, Any] = {
        "key_type": types[0],
        "value_type": types[1],
        "header_type": types[2],
        "key": key,
        "headers": headers,
    }
    if form is Input.JSON:
        return JsonFormat(**shared)
    return LineFormat(key_separator=separators[0], headers_separator=separators[1], null=null, **shared)


def _source(form: Input, files: list[Path], delimiter: bytes, make: RecordFormat, skip: bool) -> Source:
    if form is Input.FILES:
        return FileSource(files, make)
    return LineSource(files, delimiter, make, skip=skip)


def _key(text: str | None, kind: DataType) -> bytes | None:
    if text is None:
        return None
    try:
        return kind.parse(text.encode()) if kind.parse else text.encode()
    except WrongData as error:
        raise UsageError(f"--key: {error}") from None


def _headers(given: list[str], kind: DataType) -> Headers:
    headers = []
    for text in given:
        name, found, value = text.partition("=")
        if not found:
            raise UsageError(f"--header {text!r}: NAME=VALUE")
        try:
            headers.append(parse_header(name.encode(), value.encode(), kind))
        except WrongData as error:
            raise UsageError(f"--header: {error}") from None
    return tuple(headers)


async def _partition_count(session: Session, topic: str, partition: int | None) -> int:
    """NotFound for a partition the topic does not have."""
    count = (await session.client.topic(topic)).partition_count
    if partition is not None and partition >= count:
        raise NotFound(f"--partition {partition}: {topic} has {count}, counted from 0")
    return count
