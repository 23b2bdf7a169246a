"""The forms of `-o` for a stream of records: JSON lines, YAML documents, lines of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kafka_client import TopicPartition
from kafka_client.records import Record
from millstream.commands.consume.columns import (
    HEADERS,
    KEY,
    OFFSET,
    TIMESTAMP,
    VALUE,
    RecordPrinter,
    TypedFields,
)
from millstream.commands.consume.format_string import DEFAULT, format_printer
from millstream.data_types.data_type import InternalReader, JsonValue
from millstream.terminal.output import Format

_LINE = (b"\\", b"\\\\"), (b"\t", b"\\t"), (b"\n", b"\\n"), (b"\r", b"\\r")


def printer(form: Format, fields: TypedFields) -> RecordPrinter:
    """Return the printer for `-o`: lines of values without it, and an object a line for JSON."""
    match form:
        case Format.TABLE:
            return format_printer(DEFAULT, fields)
        case Format.PLAIN:
            return _plain(fields)
        case Format.YAML:
            return _yaml(fields)
        case _:
            return _json(fields)


def internal_printer(read: InternalReader) -> RecordPrinter:
    """Return a printer for records of an internal topic, such as __consumer_offsets.

    The printer writes a line per record, in the form of Kafka's console formatters. It leaves out records for
    which `read` returns None.
    """

    def render(tp: TopicPartition, records: Sequence[Record]) -> bytes:
        texts = (read(record[KEY], record[VALUE]) for record in records)
        return b"".join(text.encode() + b"\n" for text in texts if text is not None)

    return render


class _Row(msgspec.Struct, gc=False):
    """A record as JSON and YAML show it. A struct is made and written in half the time of a dict."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    headers: list[list[JsonValue]]
    key: JsonValue
    value: JsonValue


def _rows(tp: TopicPartition, records: Sequence[Record], fields: TypedFields) -> list[_Row]:
    topic, partition = tp
    return [
        _Row(
            topic,
            partition,
            record[OFFSET],
            record[TIMESTAMP],
            fields.header_pairs(record[HEADERS]) if record[HEADERS] else [],
            key,
            value,
        )
        for record, key, value in zip(
            records, fields.values(KEY, records), fields.values(VALUE, records), strict=True
        )
    ]


def _json(fields: TypedFields) -> RecordPrinter:
    encode: Callable[[list[_Row]], bytes] = msgspec.json.Encoder().encode_lines
    return lambda tp, records: encode(_rows(tp, records, fields))


def _yaml(fields: TypedFields) -> RecordPrinter:
    return lambda tp, records: b"".join(
        b"---\n" + msgspec.yaml.encode(row) for row in _rows(tp, records, fields)
    )


def _plain(fields: TypedFields) -> RecordPrinter:
    def render(tp: TopicPartition, records: Sequence[Record]) -> bytes:
        place = f"{tp.topic}\t{tp.partition}".encode()
        keys, values = (_in_lines(fields.texts(each, records)) for each in (KEY, VALUE))
        return b"".join(
            b"%b\t%d\t%d\t%b\t%b\t%b\n"
            % (
                place,
                record[OFFSET],
                record[TIMESTAMP],
                _line(fields.header_text(record[HEADERS])) if record[HEADERS] else b"",
                key,
                value,
            )
            for record, key, value in zip(records, keys, values, strict=True)
        )

    return render


def _in_lines(texts: list[bytes]) -> list[bytes]:
    """Return each text in one line; most batches have nothing to escape."""
    joined = b"".join(texts)
    if any(plain in joined for plain, _ in _LINE):
        return [_line(text) for text in texts]
    return texts


def _line(data: bytes) -> bytes:
    """Escape tabs, line ends and backslashes, so that the field stays in one line."""
    for plain, escaped in _LINE:
        data = data.replace(plain, escaped)
    return data
