"""Avro files of the files sink, read by fastavro."""

import datetime as dt
from decimal import Decimal

import pytest

from connect.api import ConfigError, DataError, SinkRecord, schema
from connect.testing import SinkRun
from plugins.files import FilesSink

fastavro = pytest.importorskip("fastavro")

ROW = schema.struct(
    {
        "id": schema.int64(),
        "name": schema.string(optional=True),
        "price": schema.decimal_(2),
        "day": schema.date(),
        "tags": schema.array(schema.string()),
        "counts": schema.map_(schema.string(), schema.int32()),
        "place": schema.struct({"city": schema.string()}),
    },
    name="com.example.Row",
)


def row(n):
    return {
        "id": n,
        "name": None if n % 2 else "x",
        "price": Decimal("1.50"),
        "day": dt.date(2026, 1, 31),
        "tags": ["a"],
        "counts": {"k": n},
        "place": {"city": "Ulm"},
    }


def put(folder, records):
    with SinkRun(FilesSink, {"path": str(folder), "format": "avro"}) as sink:
        sink.put(records)
        sink.flush()
    (path,) = folder.rglob("*.avro")
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        return reader.writer_schema, list(reader)


def test_values_come_back_with_their_types(tmp_path):
    written, rows = put(tmp_path, [SinkRecord("t", 0, n, value=row(n), value_schema=ROW) for n in range(3)])
    assert written["name"] == "com.example.Row"
    assert rows == [row(n) for n in range(3)]


@pytest.mark.parametrize("other", [None, schema.struct({"id": schema.int32()})])
def test_values_without_one_schema_are_refused_by_offset(tmp_path, other):
    records = [
        SinkRecord("t", 0, 4, value={"id": 1}, value_schema=schema.struct({"id": schema.int64()})),
        SinkRecord("t", 0, 5, value={"id": 1}, value_schema=other),
    ]
    with pytest.raises(DataError, match="t-0, offsets 4 to 5: Avro needs values of one schema"):
        put(tmp_path, records)


def test_whole_records_have_no_schema(tmp_path):
    with pytest.raises(ConfigError, match="must be value"):
        SinkRun(FilesSink, {"path": str(tmp_path), "format": "avro", "content": "record"})
