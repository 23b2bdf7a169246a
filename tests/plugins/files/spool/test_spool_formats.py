"""Formats of the spool source: what comes out, and going on in the middle of each."""

import datetime as dt
import json
import random
from decimal import Decimal

import pytest

from connect.api import ConnectError, schema
from plugins.files import decompressed
from plugins.files.spool import json_rows
from tests.plugins.files.spool.conftest import reported, values

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def resumes_everywhere(spool, expected):
    """Read one by one, and from each place on to the end."""
    records = spool(batch_size=1, cleanup_policy="none").records()
    assert values(records) == expected
    for i, record in enumerate(records):
        rest = spool(spool().store_at(record), batch_size=3, cleanup_policy="none").records()
        assert values(rest) == expected[i + 1 :]


def test_declared_columns_of_csv_are_exact(spool, inbox):
    (inbox / "a.csv").write_text(
        "id,code,price,day,at,ok,x\n"
        "9223372036854775807,007,12345678901234567890.12,2026-01-31,2026-01-31T12:00:00Z,true,1\n"
        ",,,,,,\n"
        "9223372036854775808,1,1,2026-01-01,2026-01-01,f,2\n"
        "1,1,0.123,2026-01-01,2026-01-01,f,2\n"
    )
    run = spool(csv_schema="id:int64, price:decimal(2), day:date, at:timestamp, ok:boolean")
    first, empty = run.records()
    assert first.value == {
        "id": 2**63 - 1,
        "code": "007",
        "price": Decimal("12345678901234567890.12"),
        "day": dt.date(2026, 1, 31),
        "at": dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC),
        "ok": True,
        "x": "1",
    }
    assert empty.value == dict.fromkeys(("id", "price", "day", "at", "ok")) | {"code": "", "x": ""}
    for record in (first, empty):
        record.value_schema.check(record.value)
    assert [why.split(": ", 1)[1] for _, why in reported(run)] == [
        "column id: '9223372036854775808' is no int64",
        "column price: '0.123' is no decimal(2)",
    ]


def test_inferred_columns_keep_long_ids_and_leading_zeros(spool, inbox):
    (inbox / "a.csv").write_text("a,b,c\n9007199254740993,007,99999999999999999999\n")
    (record,) = spool(csv_types="infer").records()
    assert record.value == {"a": 9007199254740993, "b": "007", "c": "99999999999999999999"}


def test_a_declared_column_that_the_header_has_not(spool, inbox):
    (inbox / "a.csv").write_text("a\n1\n")
    with pytest.raises(ConnectError, match=r"a\.csv, after line 0: csv\.schema has b, the header has not"):
        spool(csv_schema="b:int8").records()


def test_json_lines_keep_long_ids(spool, inbox):
    (inbox / "a.ndjson").write_text('{"id": 9007199254740993}\n{"id": 99999999999999999999}')
    assert values(spool().records()) == [{"id": 9007199254740993}, {"id": 99999999999999999999}]


@pytest.mark.parametrize("pretty", [None, 2])
@pytest.mark.parametrize("piece", [1, 7, 65536])
def test_arrays_are_read_in_pieces(spool, inbox, monkeypatch, pretty, piece):
    monkeypatch.setattr(json_rows, "_PIECE", piece)
    expected = [{"id": 9007199254740993}, 12, -1.5e3, 'a"[,]\\', [[], {"ü": None}], True, None, {"s": "]}"}]
    (inbox / "a.json").write_text(json.dumps(expected, indent=pretty, ensure_ascii=False), "utf-8-sig")
    resumes_everywhere(spool, expected)


def test_documents_one_after_the_other(spool, inbox):
    (inbox / "a.json").write_text('{"a":1}\n{"a":\n2}  {"a":3}')
    resumes_everywhere(spool, [{"a": 1}, {"a": 2}, {"a": 3}])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"a":1}', "behind document 1: no JSON, the file ends within the array"),
        ('[{"a":1},]', "behind document 1: no JSON, Expecting value"),
        ('[{"a":1} {"a":2}]', "behind document 1: no JSON, a comma is missing"),
        ("[1] x", "behind document 1: no JSON, something follows the array"),
        ("[NaN]", "NaN is no JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_json_that_is_none_is_an_error_of_the_file(spool, inbox, text, why):
    (inbox / "a.json").write_text(text)
    with pytest.raises(ConnectError, match=r"a\.json, after line \d: .*" + why):
        spool().records()


@pytest.mark.parametrize("text", ["", "[]", " \n", "[ ]\n"])
def test_json_without_documents(spool, inbox, text):
    (inbox / "a.json").write_text(text)
    assert spool().records() == []


def test_avro_with_its_schema(spool, inbox):
    fastavro = pytest.importorskip("fastavro")
    avro = {
        "type": "record", "name": "com.example.Row", "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"]},
            {"name": "price", "type": DECIMAL},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        ],
    }  # fmt: skip
    rows = [
        {
            "id": 2**53 + n,
            "name": None if n % 2 else "x",
            "price": Decimal("1.50"),
            "at": dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC),
            "uid": "12345678-1234-5678-1234-567812345678",
            "tags": ["a"],
            "kind": "A",
        }
        for n in range(10)
    ]
    with (inbox / "a.avro").open("wb") as file:
        fastavro.writer(file, avro, rows, sync_interval=100)
    resumes_everywhere(spool, rows)
    record = spool(cleanup_policy="none").records()[0]
    assert record.value_schema.name == "com.example.Row"
    assert record.value_schema.fields["price"] == schema.decimal_(2)
    record.value_schema.check(record.value)


def test_avro_that_is_damaged(spool, inbox):
    fastavro = pytest.importorskip("fastavro")
    path = inbox / "a.avro"
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "string"}, ["x" * 20] * 100, sync_interval=100)
    path.write_bytes(path.read_bytes()[:-30])
    run = spool(batch_size=10)
    with pytest.raises(ConnectError, match=r"a\.avro, after line [1-9]\d: behind record"):
        run.records()


def test_parquet_with_its_schema(spool, inbox):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    count = 10
    time = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    columns = {
        "id": pa.array([2**53 + n for n in range(count)], pa.int64()),
        "price": pa.array([Decimal("1.50")] * count, pa.decimal128(9, 2)),
        "at": pa.array([time] * count, pa.timestamp("us", "UTC")),
        "local": pa.array([0] * count, pa.timestamp("ns")),
        "day": pa.array([dt.date(2026, 1, 31)] * count, pa.date32()),
        "tags": pa.array([["a"]] * count, pa.list_(pa.string())),
        "place": pa.array([{"city": None}] * count, pa.struct({"city": pa.string()})),
        "kind": pa.array(["A"] * count).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), inbox / "a.parquet", row_group_size=4)
    expected = [
        {
            "id": 2**53 + n,
            "price": Decimal("1.50"),
            "at": time,
            "local": dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
            "day": dt.date(2026, 1, 31),
            "tags": ["a"],
            "place": {"city": None},
            "kind": "A",
        }
        for n in range(count)
    ]
    resumes_everywhere(spool, expected)
    record = spool(cleanup_policy="none").records()[0]
    record.value_schema.check(record.value)
    assert record.value_schema.fields["price"] == schema.decimal_(2, optional=True)


def test_parquet_that_is_none(spool, inbox):
    pytest.importorskip("pyarrow")
    (inbox / "a.parquet").write_bytes(b"PAR1" + b"\0" * 100)
    with pytest.raises(ConnectError, match=r"a\.parquet, after line 0: is no Parquet file"):
        spool().records()


def test_a_line_without_end_is_not_read_into_memory(spool, inbox, monkeypatch):
    monkeypatch.setattr(decompressed, "LINE_BYTES_MAX", 2 << 20)
    with (inbox / "a.bin").open("wb") as file:
        file.write(b"first\n")
        file.truncate(1 << 30)
    run = spool()
    with pytest.raises(ConnectError, match=r"a\.bin, after line \d: .*a line of more than 2 MiB"):
        run.records()


def test_random_splits_of_an_array_give_what_json_gives(spool, inbox, monkeypatch):
    random.seed(7)
    for _ in range(20):
        monkeypatch.setattr(json_rows, "_PIECE", random.randint(1, 9))
        expected = [random.choice([1, 1.25, "x]", {"a": [1, {}]}, [], None]) for _ in range(9)]
        (inbox / "a.json").write_text(json.dumps(expected))
        assert values(spool(cleanup_policy="none").records()) == expected
