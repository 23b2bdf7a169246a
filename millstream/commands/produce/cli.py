"""`millstream produce`: records from lines, JSON lines and files."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from kafka_client import BatchProducer, TransactionalProducer
from kafka_client.properties import PRODUCER, ClientProperties
from kafka_client.records import Headers
from millstream.commands.produce import options
from millstream.commands.produce.json_format import JsonFormat
from millstream.commands.produce.line_format import LineFormat, parse_header
from millstream.commands.produce.options import Input
from millstream.commands.produce.producing import Producing, Source
from millstream.commands.produce.sending import MAX_REQUEST_SIZE, Producer, Sender
from millstream.commands.produce.source import FileSource, LineSource, RecordFormat
from millstream.data_types import options as type_options
from millstream.data_types.data_type import DataType, WrongData
from millstream.data_types.escapes import unescaped
from millstream.data_types.find import find_type
from millstream.data_types.names import TypeName
from millstream.data_types.schema_options import SchemaOptions
from millstream.terminal.command import command
from millstream.terminal.progress import Progress
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, UsageError

app = typer.Typer(add_completion=False)

MINUTE_MS = 60_000
_TRANSACTIONS_OWN = ("acks", "enable_idempotence")
"""Settings that TransactionalProducer fixes and does not take."""


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
    key_type: type_options.KeyType = TypeName.STRING,
    value_type: type_options.ValueType = TypeName.STRING,
    header_type: type_options.HeaderType = TypeName.STRING,
    compression_type: options.Compression = None,
    acks: options.Acks = None,
    transactional_id: options.TransactionalId = None,
    transaction_timeout_ms: options.TransactionTimeoutMs = MINUTE_MS,
    skip_errors: options.SkipErrors = False,
    schema_registry: type_options.Registry = None,
    key_schema: type_options.KeySchema = None,
    value_schema: type_options.ValueSchema = None,
    key_schema_id: type_options.KeySchemaId = None,
    value_schema_id: type_options.ValueSchemaId = None,
    key_message: type_options.KeyMessage = None,
    value_message: type_options.ValueMessage = None,
    key_subject: options.KeySubject = None,
    value_subject: options.ValueSubject = None,
) -> None:
    """Write records to a topic: a value a line from stdin or files, JSON lines, or a record a file."""
    keys = SchemaOptions(
        schema_registry, key_schema, key_message, key_schema_id, key_subject or f"{topic}-key"
    )
    values = SchemaOptions(
        schema_registry, value_schema, value_message, value_schema_id, value_subject or f"{topic}-value"
    )
    types = (
        find_type(key_type, keys),
        find_type(value_type, values),
        find_type(header_type, SchemaOptions()),
    )
    null = None if null_marker is None else unescaped(null_marker)
    separators = tuple(
        None if each is None else unescaped(each) for each in (key_separator, headers_separator)
    )
    _check(input_form, files or [], delimiter, separators, null)
    make = _format(input_form, types, _key(key, types[0]), _headers(header or [], types[2]), separators, null)
    source = _source(input_form, files or [], unescaped(delimiter), make, skip_errors)
    settings = ClientProperties.layered(session.servers.properties, "").producer()
    if acks is not None:
        settings["acks"] = -1 if acks == "all" else int(acks)
    if compression_type is not None:
        settings["compression_type"] = compression_type
    run = Run(session, source, topic, partition, skip_errors, settings)
    unit = "records" if source.total is None else "bytes"
    # No progress bar while lines are typed.
    typed = not files and sys.stdin.isatty()
    bar = session.progress("produced", source.total, unit=unit)
    with nullcontext(Progress(None)) if typed else bar as progress:
        if transactional_id is None:
            await run.plainly(progress)
        else:
            await run.in_transaction(transactional_id, transaction_timeout_ms, progress)


@dataclass(frozen=True, slots=True)
class Run:
    """A run: its source, topic and partition, and the producer's settings."""

    session: Session
    source: Source
    topic: str
    partition: int | None
    skip_errors: bool
    settings: dict[str, Any]

    async def plainly(self, progress: Progress) -> None:
        """Send the records without a transaction."""
        count = await self._partition_count()
        async with BatchProducer(self.session.client, **self.settings) as producer:
            await self._producing(producer, count).plainly(producer, progress)

    async def in_transaction(self, transactional_id: str, timeout_ms: int, progress: Progress) -> None:
        """Send the records in one transaction. Raises UsageError unless acks is all."""
        if self.settings.get("acks", -1) != -1:
            raise UsageError("--transactional-id needs --acks all: leave --acks out")
        settings = {name: value for name, value in self.settings.items() if name not in _TRANSACTIONS_OWN}
        count = await self._partition_count()
        async with TransactionalProducer(
            self.session.client, transactional_id, transaction_timeout_ms=timeout_ms, **settings
        ) as producer:
            await self._producing(producer, count).in_transaction(producer, progress)

    def _producing(self, producer: Producer, count: int) -> Producing:
        limit = self.settings.get("max_request_size", MAX_REQUEST_SIZE)
        sender = Sender(producer, self.topic, count, self.partition, limit)
        return Producing(self.source, sender, self.session.tell, skip_errors=self.skip_errors)

    async def _partition_count(self) -> int:
        """Return the number of partitions. Raises NotFound if the topic does not have `partition`."""
        count = (await self.session.client.topic(self.topic)).partition_count
        if self.partition is not None and self.partition >= count:
            raise NotFound(f"--partition {self.partition}: {self.topic} has {count}, counted from 0")
        return count


def _check(
    form: Input,
    files: list[Path],
    delimiter: str,
    separators: tuple[bytes | None, ...],
    null: bytes | None,
) -> None:
    """Raise UsageError for options that do not go together."""
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


def _headers(texts: list[str], kind: DataType) -> Headers:
    headers = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--header {text!r}: NAME=VALUE")
        try:
            headers.append(parse_header(name.encode(), value.encode(), kind))
        except WrongData as error:
            raise UsageError(f"--header: {error}") from None
    return tuple(headers)
