"""Decoding the columns `key` and `value` of record batches by the names of their data types.

| type | column | type | column |
|---|---|---|---|
| bytes | binary | short, int, long | int16, int32, int64 |
| string, hex, base64 | string | float, double | float, double |

JSON, Avro and Protobuf become what their values are, mostly structs. Their column has the Arrow type that the
caller names, or that of the first batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import pyarrow as pa

from millstream.data_types.data_type import DataType, JsonValue, WrongData

Place: TypeAlias = Literal["key", "value"]

_FIXED = {
    "bytes": pa.binary(),
    "string": pa.string(),
    "hex": pa.string(),
    "base64": pa.string(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}


class ColumnDecoder:
    """Decodes one column of every batch, whose Arrow type stays the same.

    `arrow_type`: the type of the decoded column; None until the first batch, if it is inferred.
    """

    def __init__(self, place: Place, data_type: DataType, arrow_type: pa.DataType | None = None) -> None:
        self._place = place
        self._data_type = data_type
        self._named = arrow_type is not None
        self.arrow_type = arrow_type or _FIXED.get(data_type.name)

    def decode(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the column decoded. Raises WrongData, which names the record, if one is of another type."""
        column = batch.column(self._place)
        if column.type == self.arrow_type:
            return column
        if self._data_type.name == "string":
            try:
                return column.cast(pa.string())
            except pa.ArrowInvalid:
                return pa.array(self._each(batch, _text))
        return self._array(batch, self._each(batch, self._data_type.decode))

    def _each(self, batch: pa.RecordBatch, decode: Callable[[bytes], JsonValue]) -> list[JsonValue]:
        values: list[JsonValue] = []
        for data in batch.column(self._place).to_pylist():
            try:
                values.append(None if data is None else decode(data))
            except WrongData as error:
                where = self._where(batch, len(values))
                raise WrongData(f"{where}: {error}; the type bytes takes anything") from error
        return values

    def _array(self, batch: pa.RecordBatch, values: list[JsonValue]) -> pa.Array:
        """Return the values as an array of the column's type."""
        try:
            if self._data_type.name in _FIXED:
                return pa.array(values, _FIXED[self._data_type.name])
            # By the type itself, Arrow would cut 1.5 to 1; a cast is checked.
            array = pa.array(values)
            if self.arrow_type is None:
                self.arrow_type = array.type
            if not self._named:
                _check_fit(array.type, self.arrow_type, "")
            return array.cast(self.arrow_type)
        except (pa.ArrowException, WrongData) as error:
            column = f"column of {self.arrow_type}" if self.arrow_type is not None else "column"
            raise WrongData(
                f"{self._where(batch, 0)} and the next {len(values) - 1} are no {column}: {error}; "
                f"{self._place}_arrow_type names a type that has all"
            ) from error

    def _where(self, batch: pa.RecordBatch, row: int) -> str:
        topic, partition, offset = (batch.column(n)[row] for n in ("topic", "partition", "offset"))
        return f"{topic}-{partition} at offset {offset}: the {self._place}"


def decode_batch(batch: pa.RecordBatch, *decoders: ColumnDecoder) -> pa.RecordBatch:
    """Return the batch, whose first columns are the key and the value, with both decoded."""
    arrays = [decoder.decode(batch) for decoder in decoders] + batch.columns[len(decoders) :]
    fields = [pa.field(name, array.type) for name, array in zip(batch.schema.names, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise WrongData(f"{data[:40]!r} is not UTF-8: {error.reason}") from None


def _check_fit(each: pa.DataType, column: pa.DataType, name: str) -> None:
    """Raise WrongData if the type has other fields than the column, or of another kind.

    A cast would leave fields out, and make text of numbers.
    """
    if pa.types.is_struct(each) and pa.types.is_struct(column):
        for field in each:
            if column.get_field_index(field.name) < 0:
                raise WrongData(f"{name}{field.name} is a new field")
            _check_fit(field.type, column.field(field.name).type, f"{name}{field.name}.")
    elif pa.types.is_list(each) and pa.types.is_list(column):
        _check_fit(each.value_type, column.value_type, name)
    elif each != column and not pa.types.is_null(each) and not (_is_number(each) and _is_number(column)):
        raise WrongData(f"{name.rstrip('.') or 'it'} is {each}, not {column}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
