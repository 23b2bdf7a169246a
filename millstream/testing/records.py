"""Records as a test writes them and reads them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from kafka_client.records import NewRecord

Text: TypeAlias = str | bytes | None
"""Text is written in UTF-8."""


class ReadRecord(NamedTuple):
    """A record that was read; `timestamp` in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def text(self) -> str:
        """The value as text."""
        return "" if self.value is None else self.value.decode()

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset} {self.key!r}: {self.value!r}"


def new_record(
    value: Text | tuple[Text, Text], headers: Mapping[str, Text] | None, timestamp: int | None
) -> NewRecord:
    """Return a record with a value, or with a key and a value."""
    key, value = value if isinstance(value, tuple) else (None, value)
    named = tuple((name, _encoded(content)) for name, content in (headers or {}).items())
    at_ms = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    return at_ms, _encoded(key), _encoded(value), named


def in_order(records: Iterable[ReadRecord]) -> list[ReadRecord]:
    """Return the records by partition and offset."""
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _encoded(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
