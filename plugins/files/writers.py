"""Writers of records to a file: JSON lines, Parquet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from connect.api import ConfigError, DataError, Schema, SinkRecord, Type
from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP
from plugins.files.avro import avro_schema
from plugins.files.config import FilesSinkConfig

if TYPE_CHECKING:
    import pyarrow as pa

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


def parquet_writer(config: FilesSinkConfig) -> Writer:
    """Return a writer of columns by the values' schema, or by the values themselves if they have none."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as e:
        raise ConfigError("format", "parquet", "needs pyarrow: pip install 'millstream[parquet]'") from e
    rows = _rows(config)

    def write(file: BinaryIO, records: Sequence[SinkRecord]) -> None:
        values = rows(records)
        odd = next((v for v in values if not isinstance(v, dict)), None)
        if odd is not None:
            raise DataError(
                f"{_span(records)}: a value is {type(odd).__name__}, Parquet's rows are objects; "
                "content=record takes any value"
            )
        try:
            table = _table(config, records, values)
            pq.write_table(table, file, compression=config.parquet_compression)
        except (pa.ArrowException, AttributeError, TypeError, OverflowError) as e:
            raise DataError(f"{_span(records)}: values do not fit columns: {e}") from e

    return write


def _table(config: FilesSinkConfig, records: Sequence[SinkRecord], values: Sequence[Any]) -> pa.Table:
    """Return a table with the columns of all rows; a row may lack some of them."""
    import pyarrow as pa

    schemas = {id(r.value_schema): r.value_schema for r in records if r.value is not None}
    struct_schemas = [arrow_schema(s) for s in schemas.values() if s is not None and s.type is Type.STRUCT]
    if config.content == "value" and struct_schemas and len(struct_schemas) == len(schemas):
        if len(struct_schemas) == 1:
            return pa.Table.from_pylist(values, schema=struct_schemas[0])
        merged = pa.unify_schemas(struct_schemas, promote_options="permissive")
        return pa.Table.from_pylist(values, schema=pa.schema([f.with_nullable(True) for f in merged]))
    names = dict.fromkeys(name for value in values for name in value)
    return pa.table({name: [value.get(name) for value in values] for name in names})


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


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return a struct's fields as an Arrow schema."""
    import pyarrow as pa

    return pa.schema([pa.field(n, _arrow_type(s), s.optional) for n, s in schema.fields.items()])


def _arrow_type(schema: Schema) -> pa.DataType:
    import pyarrow as pa

    if schema.name == DECIMAL:
        return pa.decimal128(38, int(schema.parameters.get("scale", 0)))
    logical = {DATE: pa.date32(), TIME: pa.time32("ms"), TIMESTAMP: pa.timestamp("ms", tz="UTC")}
    if schema.name in logical:
        return logical[schema.name]
    match schema.type:
        case Type.ARRAY if schema.values:
            return pa.list_(_arrow_type(schema.values))
        case Type.MAP if schema.keys and schema.values:
            return pa.map_(_arrow_type(schema.keys), _arrow_type(schema.values))
        case Type.STRUCT:
            return pa.struct([pa.field(n, _arrow_type(s), s.optional) for n, s in schema.fields.items()])
    return {
        Type.INT8: pa.int8(),
        Type.INT16: pa.int16(),
        Type.INT32: pa.int32(),
        Type.INT64: pa.int64(),
        Type.FLOAT32: pa.float32(),
        Type.FLOAT64: pa.float64(),
        Type.BOOLEAN: pa.bool_(),
        Type.STRING: pa.string(),
        Type.BYTES: pa.binary(),
    }[schema.type]
