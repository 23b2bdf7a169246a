"""Rows made of the record reader's buffers are the records that are decoded one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")
from kafka_client.records import (
    Codec,
    NewRecord,
    assign_append_time,
    build_batch,
    decode_records,
    read_header,
)
from plugins.spark import arrow
from plugins.spark.log_range import LogRange

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
payloads = st.none() | st.binary(max_size=20)
headers = st.just(()) | st.lists(st.tuples(st.text(max_size=3), payloads), max_size=2).map(tuple)
rows = st.lists(st.tuples(st.integers(0, 1 << 41), payloads, payloads, headers), min_size=1, max_size=12)


@given(
    parts=st.lists(rows, min_size=1, max_size=4),
    start=st.integers(0, 12),
    size=st.integers(0, 40),
    at_once=st.integers(1, 9),
    include_headers=st.booleans(),
    codec=st.sampled_from(Codec),
    append_time=st.booleans(),
)
def test_rows_are_the_records_of_the_range(
    parts: list[list[NewRecord]],
    start: int,
    size: int,
    at_once: int,
    include_headers: bool,
    codec: Codec,
    append_time: bool,
) -> None:
    log_range = LogRange("orders", 3, start, start + size)
    builder = arrow._Builder(log_range, include_headers)
    expected: list[dict[str, object]] = []
    actual: list[dict[str, object]] = []
    offset = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "ROWS", at_once)
        for part in parts:
            batch = bytearray(build_batch(part, base_offset=offset, codec=codec))
            if append_time:
                assign_append_time(batch, 1_700_000_000_123)
            offset += len(part)
            for full in builder.add(read_header(batch), memoryview(batch)):
                assert full.num_rows == at_once
                actual += full.to_pylist()
            for at, timestamp, key, value, named in decode_records(batch):
                if not log_range.start <= at < log_range.end:
                    continue
                row: dict[str, object] = {
                    "key": key,
                    "value": value,
                    "topic": "orders",
                    "partition": 3,
                    "offset": at,
                    "timestamp": EPOCH + timedelta(milliseconds=timestamp),
                    "timestampType": int(append_time),
                }
                if include_headers:
                    row["headers"] = [{"key": n, "value": v} for n, v in named] or None
                expected.append(row)
        if builder.rows:
            actual += builder.take().to_pylist()
    assert actual == expected


def test_large_records_are_given_out_before_a_column_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "GATHERED_BYTES_MAX", 1000)
    builder = arrow._Builder(LogRange("orders", 0, 0, 100), include_headers=True)
    sizes = [300, 300, 300, 300, 5000, 10]
    batches = []
    for offset, size in enumerate(sizes):
        batch = build_batch([(0, None, bytes(size), ())], base_offset=offset)
        batches += builder.add(read_header(batch), memoryview(batch))
    batches.append(builder.take())
    assert [[len(row["value"]) for row in each.to_pylist()] for each in batches] == [
        [300, 300, 300],
        [300],
        [5000],
        [10],
    ]
    assert [offset for each in batches for offset in each["offset"].to_pylist()] == list(range(6))
