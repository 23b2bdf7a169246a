"""What records are printed through: a batch's records of one partition become one piece of output.

`TypedFields` reads keys, values and headers by their types; `RecordPrinter` is what every form is to the one
who reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kafka_client import TopicPartition
from kafka_client.records import Headers, Record
from millstream.data_types.data_type import DataType, JsonValue, WrongData

RecordPrinter: TypeAlias = Callable[[TopicPartition, Sequence[Record]], bytes]
"""WrongData where a record is not of its type; it need not say which."""

OFFSET: Final = 0
TIMESTAMP: Final = 1
KEY: Final = 2
VALUE: Final = 3
HEADERS: Final = 4
Content: TypeAlias = Literal[2, 3]
"""Places in a `Record`."""


@dataclass(frozen=True, slots=True)
class TypedFields:
    """The types of what a record holds, and the text that stands for null in a line."""

    key: DataType
    value: DataType
    header: DataType
    null: bytes = b""

    def texts(self, place: Content, records: Sequence[Record]) -> list[bytes]:
        """Keys or values as a line shows them."""
        null, text = self.null, (self.key if place == KEY else self.value).text
        try:
            if text is None:
                return [null if (data := record[place]) is None else data for record in records]
            return [null if (data := record[place]) is None else text(data) for record in records]
        except WrongData as error:
            raise WrongData(f"{_name(place)}: {error}") from None

    def values(self, place: Content, records: Sequence[Record]) -> list[JsonValue]:
        """Keys or values as JSON says them."""
        decode = (self.key if place == KEY else self.value).decode
        try:
            return [None if (data := record[place]) is None else decode(data) for record in records]
        except WrongData as error:
            raise WrongData(f"{_name(place)}: {error}") from None

    def header_text(self, headers: Headers) -> bytes:
        """`name=value,name=value`, as kcat shows them; NULL for null."""
        text = self.header.text
        try:
            return b",".join(
                name.encode() + b"=" + (b"NULL" if data is None else text(data) if text else data)
                for name, data in headers
            )
        except WrongData as error:
            raise WrongData(f"a header: {error}") from None

    def header_pairs(self, headers: Headers) -> list[list[JsonValue]]:
        """Names and values as pairs: a name may come twice."""
        decode = self.header.decode
        try:
            return [[name, None if data is None else decode(data)] for name, data in headers]
        except WrongData as error:
            raise WrongData(f"a header: {error}") from None


def lengths(place: Content, records: Iterable[Record]) -> list[int]:
    """Bytes of keys or values, -1 for null."""
    return [-1 if (data := record[place]) is None else len(data) for record in records]


def _name(place: Content) -> str:
    return "the key" if place == KEY else "the value"
