"""Records of an Avro file, block by block."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, BinaryIO

from connect.api import ConnectError, DataError, Schema
from plugins.files.spool.avro_schema import connect_schema
from plugins.files.spool.rows import Rows


class AvroRows:
    """A reader of records. `line` counts them: a later start skips whole blocks undecoded."""

    position = 0

    def __init__(self, file: BinaryIO, line: int) -> None:
        """Open it behind the first `line` records."""
        try:
            import fastavro
        except ImportError as e:
            raise ConnectError("Avro needs fastavro: pip install 'millstream[avro]'") from e
        self._file = file
        try:
            reader = fastavro.block_reader(file)
        except Exception as e:  # fastavro has no error class of its own
            raise DataError(f"is no Avro file: {e}") from e
        self.value_schema: Schema | None = connect_schema(reader.writer_schema)
        self.line = line
        self._records = self._behind(iter(reader), line)

    def _behind(self, blocks: Iterator[Any], skip: int) -> Iterator[Any]:
        for block in blocks:
            if block.num_records <= skip:
                skip -= block.num_records
                continue
            for record in block:
                if skip:
                    skip -= 1
                else:
                    yield record

    def read(self, count: int) -> Rows:
        """Return the next records, at most `count`. Raises DataError if the file is damaged."""
        values: list[Any] = []
        first = self.line
        try:
            for record in self._records:
                values.append(_plain(record))
                if len(values) == count:
                    break
        except Exception as e:
            raise DataError(f"behind record {first + len(values)}: {type(e).__name__}: {e}") from e
        self.line += len(values)
        return Rows(values, range(first + 1, self.line + 1), ended=len(values) < count)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _plain(value: Any) -> Any:
    """Return the value with UUIDs as text."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, uuid.UUID) else value
