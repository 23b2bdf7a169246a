"""Bare JSON as Arrow columns, read by pyarrow in one call per batch.

It gives up, with None, wherever its result could differ from that of the converter for single values. These
are values that are no objects or are null texts, invalid UTF-8, numbers that a double does not hold, NaN, and
whatever pyarrow refuses.
Dates in texts stay texts, though pyarrow takes them for timestamps: such fields are read again as strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_EXACT_MAX = float(1 << 53)
"""From here on doubles lack whole numbers."""
_TOPICS_MAX = 1000


class JsonColumns:
    """A reader of JSON objects into struct arrays, which remembers each topic's fields with dates."""

    def __init__(self) -> None:
        self._dates: dict[str, pa.Schema] = {}

    def read(self, topic: str, texts: pa.Array) -> pa.Array | None:
        """Return the objects as a struct array, null where `texts` (binary) is null; None to give up."""
        import pyarrow as pa
        import pyarrow.compute as pc

        present = texts.drop_null() if texts.null_count else texts
        if not len(present):
            return None
        try:
            strings = present.cast(pa.string())  # checks the encoding, copies nothing
            if not (_all(pc.starts_with(strings, "{")) and _all(pc.ends_with(strings, "}"))):
                return None
            table = self._table(topic, strings)
        except pa.ArrowException:
            return None
        if table is None or table.num_rows != len(present) or not table.num_columns:
            return None
        columns = [column.combine_chunks() for column in table.columns]
        if not all(map(_is_exact, columns)):
            return None
        structs = pa.StructArray.from_arrays(columns, fields=list(table.schema))
        if not texts.null_count:
            return structs
        places = pc.if_else(texts.is_valid(), pc.subtract(pc.cumulative_sum(_ones(texts)), 1), None)
        return structs.take(places)

    def _table(self, topic: str, strings: pa.Array) -> pa.Table | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        lines = pc.binary_join(pa.ListArray.from_arrays([0, len(strings)], strings), "\n")[0].as_buffer()
        table = _read(lines, self._dates.get(topic))
        dated = [field for field in table.schema if _has_date(field.type)]
        if dated:
            texts_only = {field.name: field for field in self._dates.get(topic, ())}
            texts_only |= {field.name: pa.field(field.name, _without_dates(field.type)) for field in dated}
            if len(self._dates) >= _TOPICS_MAX:
                self._dates.clear()
            self._dates[topic] = pa.schema(list(texts_only.values()))
            table = _read(lines, self._dates[topic])
            if any(_has_date(field.type) for field in table.schema):
                return None
        if topic in self._dates:  # a field of the schema that no object has
            named = [n for n in table.column_names if not _is_added(table, n, lines)]
            table = table.select(named)
        return table


def _read(lines: pa.Buffer, schema: pa.Schema | None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.json as json

    return json.read_json(
        pa.BufferReader(lines),
        read_options=json.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=json.ParseOptions(explicit_schema=schema),
    )


def _is_added(table: pa.Table, name: str, lines: pa.Buffer) -> bool:
    """Return True if a column is there only for the schema's sake."""
    if table.column(name).null_count < table.num_rows:
        return False
    return f'"{name}"'.encode() not in lines.to_pybytes()


def _ones(texts: pa.Array) -> pa.Array:
    import pyarrow as pa

    return texts.is_valid().cast(pa.int64())


def _all(flags: pa.Array) -> bool:
    return bool(flags.true_count == len(flags))


def _has_date(type: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_nested(type):
        return any(_has_date(type.field(i).type) for i in range(type.num_fields))
    return bool(pa.types.is_temporal(type))


def _without_dates(type: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_struct(type):
        fields = [type.field(i) for i in range(type.num_fields)]
        return pa.struct([pa.field(f.name, _without_dates(f.type)) for f in fields])
    if pa.types.is_list(type):
        return pa.list_(_without_dates(type.value_type))
    return pa.string() if pa.types.is_temporal(type) else type


def _is_exact(column: pa.Array) -> bool:
    """Return True if no double in the column can be a rounded whole number, or no JSON number at all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_struct(column.type):
        return all(map(_is_exact, column.flatten()))
    if pa.types.is_list(column.type):
        return _is_exact(column.flatten())
    if not pa.types.is_floating(column.type) or column.null_count == len(column):
        return True
    if not _all(pc.is_finite(column.drop_null())):
        return False
    bounds = pc.min_max(column).as_py()
    return max(-float(bounds["min"]), float(bounds["max"])) < _EXACT_MAX
