"""The writer of Parquet files from columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, BinaryIO

from connect.api import ColumnBatch, ConfigError, DataError
from plugins.files.config import FilesSinkConfig

if TYPE_CHECKING:
    import pyarrow as pa

ColumnWriter = Callable[[BinaryIO, Sequence[ColumnBatch]], None]


def parquet_writer(config: FilesSinkConfig) -> ColumnWriter:
    """Return a writer of one file with the columns of all its batches; a row may lack some of them."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as e:
        raise ConfigError("format", "parquet", "needs pyarrow: pip install 'millstream[parquet]'") from e
    table_of = _values if config.content == "value" else _records

    def write(file: BinaryIO, batches: Sequence[ColumnBatch]) -> None:
        try:
            tables = [table for batch in batches if (table := table_of(batch)) is not None]
            table = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
            pq.write_table(table, file, compression=config.parquet_compression)
        except pa.ArrowException as e:
            raise DataError(f"{_span(batches)}: values do not fit columns: {e}") from e

    return write


def _values(batch: ColumnBatch) -> pa.Table | None:
    """Return a row for each value that is not null; None if there is none."""
    import pyarrow as pa

    values = batch.values.drop_null() if batch.values.null_count else batch.values
    if not len(values):
        return None
    if not pa.types.is_struct(values.type):
        raise DataError(
            f"{_span([batch])}: a value is {values.type}, Parquet's rows are objects; "
            "content=record takes any value"
        )
    schema = pa.schema([values.type.field(i) for i in range(values.type.num_fields)])
    return pa.Table.from_arrays(values.flatten(), schema=schema)


def _records(batch: ColumnBatch) -> pa.Table:
    import pyarrow as pa

    count = len(batch)
    headers = pa.array([[]] * count) if batch.headers is None else batch.headers
    columns = {
        "topic": pa.repeat(batch.topic, count),
        "partition": pa.repeat(batch.source.partition, count),
        "offset": batch.offsets,
        "timestamp": batch.timestamps.cast(pa.int64()),
        "key": batch.keys,
        "value": batch.values,
        "headers": headers,
    }
    return pa.table(columns)


def _span(batches: Sequence[ColumnBatch]) -> str:
    first, last = batches[0], batches[-1]
    return f"{first.source}, offsets {first.offsets[0].as_py()} to {last.offsets[-1].as_py()}"
