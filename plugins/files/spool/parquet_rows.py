"""Rows of a Parquet file, a row group at a time and a batch at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from connect.api import ConnectError, DataError, Schema, schema
from plugins.files.spool.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 4096
_BUFFER = 1 << 20


class ParquetRows:
    """A reader of rows. `line` counts them: a later start skips whole row groups unread."""

    position = 0

    def __init__(self, file: BinaryIO, line: int) -> None:
        """Open it behind the first `line` rows."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as e:
            raise ConnectError("Parquet needs pyarrow: pip install 'millstream[parquet]'") from e
        self._errors = (pa.ArrowException, OSError)
        self._file = file
        try:
            # Without a buffer a column of a row group is read as a whole.
            self._parquet = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        except self._errors as e:
            raise DataError(f"is no Parquet file: {e}") from e
        arrow = self._parquet.schema_arrow
        self._times = [f.name for f in arrow if pa.types.is_timestamp(f.type)]
        fields = {field.name: connect_schema(field.type) for field in arrow}
        fields_typed = {name: each.as_optional() for name, each in fields.items() if each is not None}
        self.value_schema: Schema | None = (
            schema.struct(fields_typed) if len(fields_typed) == len(fields) else None
        )
        self.line = line
        self._rows = self._behind(line)

    def _behind(self, skip: int) -> Iterator[Any]:
        for group in range(self._parquet.num_row_groups):
            rows = self._parquet.metadata.row_group(group).num_rows
            if rows <= skip:
                skip -= rows
                continue
            for batch in self._parquet.iter_batches(_BATCH, row_groups=[group]):
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                yield from self._values(batch.slice(skip))
                skip = 0

    def _values(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        values: list[dict[str, Any]] = _without_nanoseconds(batch).to_pylist()
        for name in self._times:
            for value in values:
                time = value[name]
                if isinstance(time, dt.datetime) and time.tzinfo is None:
                    value[name] = time.replace(tzinfo=dt.UTC)
        return values

    def read(self, count: int) -> Rows:
        """Return the next rows, at most `count`. Raises DataError if the file is damaged."""
        values: list[Any] = []
        first = self.line
        try:
            for row in self._rows:
                values.append(row)
                if len(values) == count:
                    break
        except self._errors as e:
            raise DataError(f"behind row {first + len(values)}: {e}") from e
        self.line += len(values)
        return Rows(values, range(first + 1, self.line + 1), ended=len(values) < count)

    def close(self) -> None:
        """Close the file."""
        self._parquet.close()
        self._file.close()


def connect_schema(kind: pa.DataType) -> Schema | None:
    """Return the Connect schema of an Arrow type, or None if Connect has none, as of unsigned 64 bits."""
    import pyarrow as pa

    types = pa.types
    simple = {
        pa.bool_(): schema.boolean, pa.int8(): schema.int8, pa.int16(): schema.int16,
        pa.int32(): schema.int32, pa.int64(): schema.int64, pa.uint8(): schema.int16,
        pa.uint16(): schema.int32, pa.uint32(): schema.int64, pa.float16(): schema.float32,
        pa.float32(): schema.float32, pa.float64(): schema.float64, pa.string(): schema.string,
        pa.large_string(): schema.string, pa.binary(): schema.bytes_, pa.large_binary(): schema.bytes_,
        pa.date32(): schema.date,
    }  # fmt: skip
    if kind in simple:
        return simple[kind]()
    if types.is_timestamp(kind):
        return schema.timestamp()
    if types.is_time(kind):
        return schema.time()
    if types.is_decimal(kind):
        return schema.decimal_(kind.scale) if kind.scale >= 0 else None
    if types.is_dictionary(kind):
        return connect_schema(kind.value_type)
    if types.is_fixed_size_binary(kind):
        return schema.bytes_()
    if types.is_list(kind) or types.is_large_list(kind):
        item = connect_schema(kind.value_type)
        return schema.array(item.as_optional()) if item is not None else None
    if types.is_struct(kind):
        fields = {field.name: connect_schema(field.type) for field in kind}
        fields_typed = {name: each.as_optional() for name, each in fields.items() if each is not None}
        return schema.struct(fields_typed) if len(fields_typed) == len(fields) else None
    return None


def _without_nanoseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with timestamps and times of ns in µs: Python's have no more."""
    import pyarrow as pa

    columns = []
    for column in batch.columns:
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        elif pa.types.is_time64(column.type) and column.type.unit == "ns":
            column = column.cast(pa.time64("us"), safe=False)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
