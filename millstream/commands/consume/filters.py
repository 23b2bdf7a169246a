"""Filtering the records to print by their keys."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kafka_client.records import Record
from millstream.commands.consume.columns import KEY
from millstream.commands.consume.reading import RecordFilter
from millstream.data_types.data_type import DataType, WrongData
from millstream.terminal.status import UsageError


def parse_pattern(text: str, option: str) -> re.Pattern[str]:
    """Return the compiled regular expression. Raises UsageError if it is not valid."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text!r}: not a regular expression: {error}") from None


def key_filter(key: str | None, pattern: str | None, key_type: DataType) -> RecordFilter | None:
    """Return a filter for records with exactly this key or with a match in the key's text, or None.

    The filter drops records without a key. Raises UsageError if both are set or the key is not of its type.
    """
    if key is not None and pattern is not None:
        raise UsageError("give --key or --key-pattern, not both")
    if key is not None:
        try:
            key_bytes = key_type.parse(key.encode()) if key_type.parse else key.encode()
        except WrongData as error:
            raise UsageError(f"--key: {error}") from None
        return lambda records: [record for record in records if record[KEY] == key_bytes]
    if pattern is None:
        return None
    search, text = parse_pattern(pattern, "--key-pattern").search, key_type.text

    def keep(records: Sequence[Record]) -> Sequence[Record]:
        return [
            record
            for record in records
            if (data := record[KEY]) is not None
            and search((text(data) if text else data).decode("utf-8", "replace"))
        ]

    return keep
