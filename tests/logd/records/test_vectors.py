"""Columns read at once with numpy are those read record by record; what is refused there is not read here."""

from __future__ import annotations

import sys
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logd.errors import CorruptRecordBatch
from logd.records import (
    HEADER_SIZE,
    Columns,
    NewRecord,
    Record,
    assign_append_time,
    build_batch,
    columns,
    decode_body,
    decode_body_columns,
    read_header,
    rebuild_batch,
)
from logd.records.header import BatchHeader

pytest.importorskip("numpy")
from logd.records.vectors import read_columns

payloads = (
    st.none() | st.binary(max_size=5) | st.sampled_from([b"p" * 63, b"q" * 64, b"r" * 8191, b"s" * 8192])
)
headers = st.just(()) | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3))).map(tuple)
steps = st.sampled_from(
    [0, 1, -1, 63, 64, -64, -65, 8191, 8192, -8193, 1 << 20, 1 << 27, -(1 << 34), 1 << 41]
)
gaps = st.sampled_from([1, 1, 1, 2, 63, 64, 8191, 8192, 1 << 20])
rows = st.lists(st.tuples(steps, payloads, payloads, headers, gaps), min_size=1, max_size=20)
Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]


def parts_of(batch: bytes) -> tuple[bytes, BatchHeader]:
    return batch[HEADER_SIZE:], read_header(batch)


def batch_of(rows: list[Row], *, base_offset: int = 0) -> bytes:
    """A batch with the rows' steps between timestamps and gaps between offsets, as compaction leaves them."""
    times = list(accumulate(row[0] for row in rows))
    offsets = list(accumulate((row[4] for row in rows[1:]), initial=base_offset))
    new: list[NewRecord] = [(time, *row[1:4]) for time, row in zip(times, rows, strict=True)]
    kept: list[Record] = [(offset, *record) for offset, record in zip(offsets, new, strict=True)]
    return rebuild_batch(read_header(build_batch(new, base_offset=base_offset)), kept)


@given(rows=rows, base=st.sampled_from([0, 1, 1 << 40, 1 << 60]), append_time=st.booleans())
def test_all_that_is_well_formed_is_read(rows: list[Row], base: int, append_time: bool) -> None:
    batch = bytearray(batch_of(rows, base_offset=base))
    if append_time:
        assign_append_time(batch, 1234)
    body, header = parts_of(bytes(batch))
    assert read_columns(body, header) == Columns.of(decode_body(body, header))


@given(
    rows=rows,
    changes=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=3),
    count=st.integers(-1, 2),
    cut=st.integers(0, 3),
)
@example(rows=[(0, b"k", b"v", (), 1)] * 2, changes=[(0, 0x11)], count=0, cut=0)
@example(rows=[(0, b"k", b"v", (), 1)] * 2, changes=[(4, 0x03)], count=0, cut=0)
@example(rows=[(0, b"k", b"\0\0", (), 1)] * 2, changes=[(6, 0x02)], count=0, cut=0)
def test_damage_is_left_to_the_other(
    rows: list[Row], changes: list[tuple[int, int]], count: int, cut: int
) -> None:
    body, header = parts_of(batch_of(rows))
    damaged = bytearray(body)
    for place, byte in changes:
        damaged[place % len(damaged)] = byte
    body, header = bytes(damaged[: len(damaged) - cut]), header._replace(count=header.count + count)
    found = read_columns(body, header)
    try:
        expected = Columns.of(decode_body(body, header))
    except CorruptRecordBatch:
        assert found is None
    else:
        assert found is None or found == expected


@given(body=st.binary(max_size=60), count=st.integers(0, 5))
def test_rubbish_is_left_to_the_other(body: bytes, count: int) -> None:
    header = parts_of(build_batch([(0, None, None, ())]))[1]._replace(count=count)
    found = read_columns(body, header)
    if found is not None:
        assert found == Columns.of(decode_body(body, header))


def test_times_of_more_than_eight_bytes_are_left_to_the_other() -> None:
    body, header = parts_of(build_batch([(0, b"k", b"v", ()), (1 << 57, b"k", b"v", ())]))
    assert read_columns(body, header) is None
    assert [record[1] for record in decode_body(body, header)] == [0, 1 << 57]


@pytest.mark.parametrize("field", ["base_offset", "base_timestamp"])
@pytest.mark.parametrize("value", [(1 << 63) - 1, -(1 << 63)])
def test_sums_beyond_64_bits_are_left_to_the_other(field: str, value: int) -> None:
    body, header = parts_of(build_batch([(n, b"k", b"v", ()) for n in range(200)]))
    header = header._replace(**{field: value})
    assert read_columns(body, header) is None
    assert decode_body_columns(body, header) == Columns.of(decode_body(body, header))


def test_large_batches_are_read_so_and_small_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def reader(body: bytes, header: BatchHeader) -> Columns | None:
        read.append(header.count)
        return read_columns(body, header)

    monkeypatch.setattr(columns, "_vectors", lambda: reader)
    for count in (columns.VECTORS_MIN - 1, columns.VECTORS_MIN, 1000):
        body, header = parts_of(build_batch([(n, b"k%d" % n, b"v", ()) for n in range(count)]))
        assert decode_body_columns(body, header) == Columns.of(decode_body(body, header))
    assert read == [columns.VECTORS_MIN, 1000]


def test_without_numpy_they_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "logd.records.vectors", None)
    columns._vectors.cache_clear()
    try:
        body, header = parts_of(build_batch([(n, b"k%d" % n, b"v", ()) for n in range(1000)]))
        assert decode_body_columns(body, header) == Columns.of(decode_body(body, header))
        assert columns._vectors() is None
    finally:
        columns._vectors.cache_clear()


def test_columns_from_an_offset_on() -> None:
    records: list[Record] = [(offset, offset * 10, b"k", None, ()) for offset in (3, 5, 8)]
    for first in range(10):
        assert list(Columns.of(records).from_offset(first).records()) == [r for r in records if r[0] >= first]
