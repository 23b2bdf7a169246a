"""Checks of what a plugin's methods return, so that an error names the method and what it should return."""

from __future__ import annotations

from typing import Any

from connect.api.records import SourceBatch, SourceRecord

_INT32_MAX, _INT64_MAX = (1 << 31) - 1, (1 << 63) - 1
_UNSET_TIMESTAMP = -1


def check_polled(records: Any) -> None:
    """Return if `poll` may return `records`.

    Raises TypeError for what is no list of source records, ValueError for a record that no producer takes.
    """
    if records is None or isinstance(records, SourceBatch):
        return
    if not isinstance(records, (list, tuple)):
        raise TypeError(
            f"poll returned {kind_of(records)}; a list of SourceRecord, a SourceBatch or None is needed"
        )
    for index, record in enumerate(records):
        if not isinstance(record, SourceRecord):
            raise TypeError(f"poll returned {kind_of(record)} as record {index}; a SourceRecord is needed")
        # Most records have neither.
        if record.timestamp is not None or record.partition is not None:
            _check_numbers(index, record)
        if record.headers:
            _check_header_names(index, record)
        if record.topic is not None and not isinstance(record.topic, str):
            raise TypeError(f"poll returned record {index} with topic {record.topic!r}; a text is needed")


def check_committed(offsets: Any) -> None:
    """Return if `pre_commit` may return `offsets`. Raises TypeError or ValueError for what is no offset."""
    if offsets is None:
        return
    if not isinstance(offsets, dict):
        raise TypeError(f"pre_commit returned {kind_of(offsets)}; a dict of offsets by partition is needed")
    for tp, offset in offsets.items():
        if not isinstance(offset, int):
            raise TypeError(f"pre_commit returned {kind_of(offset)} for {tp}; an offset is needed")
        if offset < 0:
            raise ValueError(f"pre_commit returned offset {offset} for {tp}; it must not be negative")


def _check_numbers(index: int, record: SourceRecord) -> None:
    """Raise ValueError for numbers out of range. A timestamp of another type is the converter's to refuse."""
    timestamp, partition = record.timestamp, record.partition
    what = f"poll returned record {index} of topic {record.topic}"
    if isinstance(timestamp, int) and not _UNSET_TIMESTAMP <= timestamp <= _INT64_MAX:
        raise ValueError(f"{what} with timestamp {timestamp}; ms since the epoch are needed, or None")
    if partition is not None and not (isinstance(partition, int) and 0 <= partition <= _INT32_MAX):
        raise ValueError(f"{what} with partition {partition!r}; a number from 0 is needed, or None")


def _check_header_names(index: int, record: SourceRecord) -> None:
    """Raise TypeError for a name that is no text. A header of another shape is the converter's to refuse."""
    headers: Any = record.headers
    for header in headers:
        if isinstance(header, tuple) and len(header) == 3 and not isinstance(header[0], str):
            name = header[0]
            raise TypeError(
                f"poll returned record {index} of topic {record.topic} with a header whose name is {name!r}; "
                "a text is needed"
            )


def kind_of(value: object) -> str:
    """Return how an error names a result that is of another type than it should be."""
    return "None" if value is None else f"an object of type {type(value).__name__}"
