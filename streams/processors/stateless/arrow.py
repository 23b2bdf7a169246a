"""Batches in Arrow's form: columns ``key``, ``value`` and ``timestamp``. Needs pyarrow (extra ``arrow``).

Values of several fields (dicts, dataclasses, structs, models) are a struct column, and come back as dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import msgspec

from streams.errors import TopologyError
from streams.processors.record import Record
from streams.processors.stateless.batches import BatchMismatch, Function, Results

KEY, VALUE, TIMESTAMP = "key", "value", "timestamp"
_AS_THEY_ARE = (bytes, bytearray, datetime, date, time, timedelta, Decimal)


def check_installed(operator: str) -> None:
    """Raise TopologyError if pyarrow is not installed; it is not imported."""
    if find_spec("pyarrow") is None:
        raise TopologyError(f"{operator}(as_='arrow') needs pyarrow: pip install 'millstream[arrow]'")


def of_batches(function: Callable[[Any], Any], *, keeps_keys: bool) -> Function:
    """Wrap a function of a `pyarrow.RecordBatch` that returns a batch, a table, or an array of values.

    A column missing in its result stays unchanged. Without a column ``value``, the other columns are the
    values' fields. With ``keeps_keys``, only the result's values are used.
    """

    def call(records: list[Record[Any, Any]]) -> Results:
        columns = _columns(function, function(_batch(records)), len(records))
        keys = None if keeps_keys else columns.get(KEY)
        times = None if keeps_keys else columns.get(TIMESTAMP)
        values = columns.get(VALUE)
        return [
            Record(
                record.key if keys is None else keys[n],
                record.value if values is None else values[n],
                record.timestamp if times is None else times[n],
                record.headers,
            )
            for n, record in enumerate(records)
        ]

    return call


def _batch(records: Sequence[Record[Any, Any]]) -> Any:
    import pyarrow as pa

    times = pa.array([record.timestamp for record in records], pa.timestamp("ms", "UTC"))
    keys, values = (_array([getattr(record, name) for record in records]) for name in (KEY, VALUE))
    return pa.RecordBatch.from_arrays([keys, values, times], [KEY, VALUE, TIMESTAMP])


def _array(values: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array(msgspec.to_builtins(values, builtin_types=_AS_THEY_ARE, enc_hook=_model))


def _model(value: Any) -> Any:
    """Return a pydantic model's fields."""
    return value.model_dump()


def _columns(function: object, result: Any, count: int) -> dict[str, list[Any]]:
    import pyarrow as pa

    name = getattr(function, "__qualname__", repr(function))
    if not isinstance(result, pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray):
        kind = type(result).__name__
        raise BatchMismatch(
            f"{name} gave a {kind}, not a pyarrow RecordBatch, Table or Array of {count} rows"
        )
    if len(result) != count:
        raise BatchMismatch(
            f"{name} gave {len(result)} rows for {count} records: it has to return one for each, in order"
        )
    if isinstance(result, pa.Array | pa.ChunkedArray):
        return {VALUE: result.to_pylist()}
    table = pa.table(result)
    if TIMESTAMP in table.column_names:
        at = table.column_names.index(TIMESTAMP)
        times = table[TIMESTAMP].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        table = table.set_column(at, TIMESTAMP, times)
    fields = [each for each in table.column_names if each not in (KEY, VALUE, TIMESTAMP)]
    columns = {each: table[each].to_pylist() for each in table.column_names if each not in fields}
    if fields and VALUE not in columns:
        columns[VALUE] = table.select(fields).to_pylist()
    return columns
