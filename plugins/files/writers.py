"""Writers of records to a file: JSON lines, Avro."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import msgspec

from connect.api import ConfigError, DataError, SinkRecord
from plugins.files.avro import avro_schema
from plugins.files.config import FilesSinkConfig

Writer = Callable[[BinaryIO, Sequence[SinkRecord]], None]


def size_of(records: Sequence[SinkRecord]) -> int:
    """Return about how many bytes the values are as JSON; 0 if they cannot be written so."""
    try:
        return len(msgspec.json.encode([record.value for record in records]))
    except (TypeError, OverflowError):
        return 0


def json_writer(config: FilesSinkConfig) -> Writer:
    """Return a writer of a value, or of a whole record, per line."""
    encode = msgspec.json.Encoder(decimal_format="number").encode
    rows = _rows(config)

    def write(file: BinaryIO, records: Sequence[SinkRecord]) -> None:
        try:
            lines = b"".join([encode(row) + b"\n" for row in rows(records)])
        except TypeError as e:
            raise DataError(f"{_span(records)}: a value cannot be written as JSON: {e}") from e
        file.write(lines)

    return write


def avro_writer(config: FilesSinkConfig) -> Writer:
    """Return a writer of Avro container files; the values need one schema a file."""
    try:
        import fastavro
    except ImportError as e:
        raise ConfigError("format", "avro", "needs fastavro: pip install 'millstream[avro]'") from e
    if config.content != "value":
        raise ConfigError("content", config.content, "must be value with format=avro")

    def write(file: BinaryIO, records: Sequence[SinkRecord]) -> None:
        schemas = [r.value_schema for r in records if r.value is not None]
        if any(schema is None or schema != schemas[0] for schema in schemas):
            raise DataError(
                f"{_span(records)}: Avro needs values of one schema, from a converter with schemas"
            )
        try:
            # A file of tombstones alone has no schema of theirs.
            schema = avro_schema(schemas[0]) if schemas and schemas[0] is not None else "null"
            fastavro.writer(file, schema, [r.value for r in records if r.value is not None], codec="deflate")
        except (ValueError, TypeError, AttributeError, OverflowError) as e:
            raise DataError(f"{_span(records)}: values do not fit their schema: {e}") from e

    return write


def _rows(config: FilesSinkConfig) -> Callable[[Sequence[SinkRecord]], list[Any]]:
    if config.content == "value":
        return lambda records: [r.value for r in records if r.value is not None]
    return lambda records: [
        {
            "topic": r.topic,
            "partition": r.partition,
            "offset": r.offset,
            "timestamp": r.timestamp,
            "key": r.key,
            "value": r.value,
            "headers": [{"name": name, "value": value} for name, _, value in r.headers],
        }
        for r in records
    ]


def _span(records: Sequence[SinkRecord]) -> str:
    first, last = records[0], records[-1]
    return f"{first.topic}-{first.partition}, offsets {first.offset} to {last.offset}"
