"""The writer of records to Avro files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

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


def _span(records: Sequence[SinkRecord]) -> str:
    first, last = records[0], records[-1]
    return f"{first.topic}-{first.partition}, offsets {first.offset} to {last.offset}"
