"""Format strings, as kcat's `-f`: columns of a batch, zipped and joined once.

- %t: topic, %p: partition, %o: offset, %T: timestamp in ms, %h: headers
- %k: key, %K: the key's size in bytes (-1: null)
- %v or %s: value, %V or %S: the value's size in bytes (-1: null), %R: the size as an int32
- %%: a percent sign; escapes are those of `escapes`
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from typing import Literal, TypeAlias

from kafka_client import TopicPartition
from kafka_client.records import Record
from millstream.commands.consume.columns import (
    HEADERS,
    KEY,
    OFFSET,
    TIMESTAMP,
    VALUE,
    Content,
    RecordPrinter,
    TypedFields,
    lengths,
)
from millstream.data_types.escapes import unescaped
from millstream.terminal.status import UsageError

DEFAULT = "%v\\n"

_Column: TypeAlias = Callable[[TopicPartition, Sequence[Record]], Iterable[bytes]]


def format_printer(form: str, fields: TypedFields) -> RecordPrinter:
    """Return a printer for this format. Raises UsageError for an unknown field."""
    columns = [_column(part, fields) for part in _parts(form)]

    def render(tp: TopicPartition, records: Sequence[Record]) -> bytes:
        return b"".join(chain.from_iterable(zip(*(column(tp, records) for column in columns), strict=True)))

    return render


def _parts(form: str) -> list[bytes | str]:
    """Split the format into literals as bytes and fields by their letters."""
    parts: list[bytes | str] = []
    literal, pos = "", 0
    while (percent := form.find("%", pos)) >= 0:
        letter = form[percent + 1 : percent + 2]
        literal += form[pos:percent]
        pos = percent + 2
        if letter == "%":
            literal += "%"
            continue
        if letter not in _FIELDS:
            raise UsageError(
                f"-f {form!r}: there is no field %{letter}; there are %{' %'.join(_FIELDS)} and %%"
            )
        if literal:
            parts.append(unescaped(literal))
        parts.append(letter)
        literal = ""
    if literal + form[pos:]:
        parts.append(unescaped(literal + form[pos:]))
    return parts


def _column(part: bytes | str, fields: TypedFields) -> _Column:
    if isinstance(part, bytes):
        return lambda tp, records: repeat(part, len(records))
    return _FIELDS[part](fields)


def _texts(place: Content) -> Callable[[TypedFields], _Column]:
    return lambda fields: lambda tp, records: fields.texts(place, records)


def _number(place: Literal[0, 1]) -> Callable[[TypedFields], _Column]:
    return lambda fields: lambda tp, records: [b"%d" % record[place] for record in records]


def _length(place: Content) -> Callable[[TypedFields], _Column]:
    return lambda fields: lambda tp, records: [b"%d" % size for size in lengths(place, records)]


def _binary_length(fields: TypedFields) -> _Column:
    return lambda tp, records: map(struct.Struct(">i").pack, lengths(VALUE, records))


def _headers(fields: TypedFields) -> _Column:
    return lambda tp, records: [fields.header_text(record[HEADERS]) for record in records]


_FIELDS: dict[str, Callable[[TypedFields], _Column]] = {
    "t": lambda fields: lambda tp, records: repeat(tp.topic.encode(), len(records)),
    "p": lambda fields: lambda tp, records: repeat(b"%d" % tp.partition, len(records)),
    "o": _number(OFFSET),
    "T": _number(TIMESTAMP),
    "k": _texts(KEY),
    "K": _length(KEY),
    "v": _texts(VALUE),
    "V": _length(VALUE),
    "s": _texts(VALUE),
    "S": _length(VALUE),
    "R": _binary_length,
    "h": _headers,
}
