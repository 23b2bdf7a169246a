"""Printing records: the records of one partition in a batch become one piece of output.

`TypedFields` decodes keys, values and headers by their types. `RecordPrinter` is the signature of every form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kafka_client import TopicPartition
from kafka_client.records import Headers, Record
from millstream.data_types.data_type import DataType, JsonValue, WrongData

RecordPrinter: TypeAlias = Callable[[TopicPartition, Sequence[Record]], bytes]
"""A function that returns the output of records. Raises WrongData if a record is not of its type."""

OFFSET: Final = 0
TIMESTAMP: Final = 1
KEY: Final = 2
VALUE: Final = 3
HEADERS: Final = 4
Content: TypeAlias = Literal[2, 3]
"""The index of the key or the value in a `Record`."""


@dataclass(frozen=True, slots=True)
class TypedFields:
    """The data types of keys, values and headers, and the text of null in a line."""

    key: DataType
    value: DataType
    header: DataType
    null: bytes = b""

    def texts(self, place: Content, records: Sequence[Record]) -> list[bytes]:
        """Return keys or values as a line shows them. Raises WrongData if one is not of its type."""
        null, text = self.null, (self.key if place == KEY else self.value).text
        try:
            if text is None:
                return [null if (data := record[place]) is None else data for record in records]
            return [null if (data := record[place]) is None else text(data) for record in records]
        except WrongData as error:
            raise WrongData(f"{_name(place)}: {error}") from None

    def values(self, place: Content, records: Sequence[Record]) -> list[JsonValue]:
        """Return keys or values as JSON values. Raises WrongData if one is not of its type."""
        decode = (self.key if place == KEY else self.value).decode
        try:
            return [None if (data := record[place]) is None else decode(data) for record in records]
        except WrongData as error:
            raise WrongData(f"{_name(place)}: {error}") from None

    def header_text(self, headers: Headers) -> bytes:
        """Return the headers as kcat shows them: `name=value,name=value`, with NULL for null."""
        text = self.header.text
        try:
            return b",".join(
                name.encode() + b"=" + (b"NULL" if data is None else text(data) if text else data)
                for name, data in headers
            )
        except WrongData as error:
            raise WrongData(f"a header: {error}") from None

    def header_pairs(self, headers: Headers) -> list[list[JsonValue]]:
        """Return names and values as pairs, since a name may occur twice."""
        decode = self.header.decode
        try:
            return [[name, None if data is None else decode(data)] for name, data in headers]
        except WrongData as error:
            raise WrongData(f"a header: {error}") from None


def lengths(place: Content, records: Iterable[Record]) -> list[int]:
    """Return the sizes of keys or values in bytes, -1 for null."""
    return [-1 if (data := record[place]) is None else len(data) for record in records]


def _name(place: Content) -> str:
    return "the key" if place == KEY else "the value"
