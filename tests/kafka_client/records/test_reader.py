"""The compiled reader: what a plain decoder reads, in every form and in parts; nothing else gets through."""

from __future__ import annotations

import random
import struct
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import (
    HEADER_SIZE,
    ArrowColumns,
    BinaryColumn,
    Codec,
    Columns,
    NewRecord,
    Record,
    RecordReader,
    assign_append_time,
    build_batch,
    decode_columns,
    decode_records,
    read_header,
    rebuild_batch,
)
from kafka_client.records.compression import compress
from kafka_client.records.header import HEADER, BatchHeader
from kafka_client.records.varint import varint
from tests.support.reference_records import reference_records

payloads = (
    st.none() | st.binary(max_size=5) | st.sampled_from([b"p" * 63, b"q" * 64, b"r" * 8191, b"s" * 8192])
)
headers = st.just(()) | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3))).map(tuple)
steps = st.sampled_from(
    [0, 1, -1, 63, 64, -64, -65, 8191, 8192, -8193, 1 << 20, 1 << 27, -(1 << 34), 1 << 41, 1 << 57]
)
gaps = st.sampled_from([1, 1, 1, 2, 63, 64, 8191, 8192, 1 << 20])
rows = st.lists(st.tuples(steps, payloads, payloads, headers, gaps), min_size=1, max_size=20)
parts = st.lists(st.integers(1, 7), min_size=1, max_size=30)
Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]


def batch_of(rows: list[Row], *, base_offset: int = 0, codec: Codec = Codec.NONE) -> bytes:
    """Build a batch from rows of (timestamp step, key, value, headers, offset gap)."""
    times = list(accumulate(row[0] for row in rows))
    offsets = list(accumulate((row[4] for row in rows[1:]), initial=base_offset))
    new: list[NewRecord] = [(time, *row[1:4]) for time, row in zip(times, rows, strict=True)]
    records: list[Record] = [(offset, *record) for offset, record in zip(offsets, new, strict=True)]
    return rebuild_batch(read_header(build_batch(new, base_offset=base_offset)), records, codec=codec)


def batch_with(body: bytes, *, count: int, codec: Codec = Codec.NONE, **fields: int) -> bytes:
    """Return a batch with `body` as its records; its CRC is wrong, which the reader does not check."""
    packed = compress(codec, body)
    header = BatchHeader(
        0, HEADER_SIZE - 12 + len(packed), 0, 2, 0, codec, max(count - 1, 0), 0, 0, -1, -1, -1, count
    )
    return HEADER.pack(*header._replace(**fields)) + packed


def reference(batch: bytes) -> list[Record]:
    return reference_records(batch[HEADER_SIZE:], read_header(batch))


def in_pieces(reader: RecordReader, sizes: list[int]) -> list[Record]:
    records: list[Record] = []
    for size in sizes:
        part = reader.records(size)
        assert len(part) == min(size, len(part) + reader.remaining)
        records += part
    return records + reader.records()


def arrow_rows(columns: ArrowColumns) -> list[Record]:
    """Return the rows that an Arrow reader would see."""
    keys, values = binary_rows(columns.keys, columns.count), binary_rows(columns.values, columns.count)
    headers = columns.headers or [()] * columns.count
    return list(zip(columns.offsets, columns.timestamps, keys, values, headers, strict=True))


def binary_rows(column: BinaryColumn, count: int) -> list[bytes | None]:
    assert column.ends[0] == 0 and column.ends[count] == len(column.data)
    values = [bytes(column.data[column.ends[n] : column.ends[n + 1]]) for n in range(count)]
    if column.valid is None:
        assert column.nulls == 0
        return list(values)
    valid = [bool(column.valid[n >> 3] >> (n & 7) & 1) for n in range(count)]
    assert column.nulls == valid.count(False) > 0
    return [data if there else None for data, there in zip(values, valid, strict=True)]


# Sound batches


@given(
    rows=rows,
    base=st.sampled_from([0, 1, 1 << 40, (1 << 63) - (1 << 26)]),
    append_time=st.booleans(),
    codec=st.sampled_from(Codec),
    sizes=parts,
)
def test_every_form_gives_what_a_plain_decoder_reads(
    rows: list[Row], base: int, append_time: bool, codec: Codec, sizes: list[int]
) -> None:
    plain = bytearray(batch_of(rows, base_offset=base))
    batch = bytearray(batch_of(rows, base_offset=base, codec=codec))
    if append_time:
        assign_append_time(plain, 1234)
        assign_append_time(batch, 1234)
    expected = reference(bytes(plain))
    assert decode_records(batch) == expected
    assert decode_records(memoryview(b"x" + batch + b"y"), 1) == expected
    assert in_pieces(RecordReader(batch), sizes) == expected
    assert decode_columns(batch) == Columns.of(expected)
    assert all_columns(RecordReader(batch), sizes) == expected
    assert all_arrow(RecordReader(batch), sizes) == expected
    reader, keys, raw = RecordReader(batch), [], b""
    while spans := reader.spans():
        keys += [span[2:] for span in spans]
        raw += b"".join(bytes(reader.piece[span[0] : span[1]]) for span in spans)
    assert keys == [(o, t, key, value is not None) for o, t, key, value, _ in expected]
    assert raw == plain[HEADER_SIZE:]
    assert reader.bytes_read == len(raw) and not reader.remaining


def all_columns(reader: RecordReader, sizes: list[int]) -> list[Record]:
    records: list[Record] = []
    for size in [*sizes, 1 << 40]:
        records += reader.columns(size).records()
    return records


def all_arrow(reader: RecordReader, sizes: list[int]) -> list[Record]:
    records: list[Record] = []
    for size in sizes:
        records += arrow_rows(reader.arrow(size))
    while (columns := reader.arrow()).count:
        records += arrow_rows(columns)
    return records


@given(rows=rows, codec=st.sampled_from(Codec), place=st.floats(0, 1), forward=st.integers(-1, 1))
def test_skipping_to_an_offset(rows: list[Row], codec: Codec, place: float, forward: int) -> None:
    batch = batch_of(rows, codec=codec)
    expected = decode_records(batch)
    offset = expected[int(place * (len(expected) - 1))][0] + forward
    reader = RecordReader(batch)
    reader.skip_to(offset)
    left = [record for record in expected if record[0] >= offset]
    assert reader.remaining == len(left)
    assert reader.records() == left


@given(rows=rows, codec=st.sampled_from(Codec), place=st.floats(0, 1), timestamp=steps)
def test_finding_a_timestamp(rows: list[Row], codec: Codec, place: float, timestamp: int) -> None:
    batch = batch_of(rows, codec=codec)
    records = decode_records(batch)
    offset = records[int(place * (len(records) - 1))][0]
    expected = ((r[1], r[0]) for r in records if r[1] >= timestamp and r[0] >= offset)
    assert RecordReader(batch).find(timestamp, offset) == next(expected, None)


@given(rows=rows, codec=st.sampled_from(Codec), append_time=st.booleans())
def test_each_keys_last_value(rows: list[Row], codec: Codec, append_time: bool) -> None:
    batch = bytearray(batch_of(rows, codec=codec))
    if append_time:
        assign_append_time(batch, 77)
    latest: dict[bytes, bytes | None] = {b"": b"before"}
    expected = dict(latest)
    records = decode_records(batch)
    for _, timestamp, key, value, _ in records:
        if key is not None:
            expected[key] = None if value is None else struct.pack(">q", timestamp) + value
    assert RecordReader(batch).latest(latest) == sum(record[2] is not None for record in records)
    assert latest == expected


@pytest.mark.parametrize("codec", Codec)
def test_records_far_larger_than_a_piece(codec: Codec) -> None:
    value = random.Random(1).randbytes(3 << 20)
    new: list[NewRecord] = [(n, None, value if n % 3 else b"", ()) for n in range(5)]
    batch = build_batch(new, codec=codec)
    assert decode_records(batch) == [(n, *record) for n, record in enumerate(new)]
    assert RecordReader(batch).check() == (4, 4, 0, 5)


def test_names_of_headers_that_are_no_utf8_are_read_as_java_reads_them() -> None:
    batch = build_batch([(0, b"k", b"v", (("nam", b"x"),))])
    assert decode_records(batch.replace(b"nam", b"n\xffm"))[0][4] == (("n�m", b"x"),)


# The verdict


@given(rows=rows, codec=st.sampled_from(Codec))
def test_the_verdict_names_the_true_timestamps(rows: list[Row], codec: Codec) -> None:
    times = list(accumulate(row[0] for row in rows))
    new: list[NewRecord] = [(time, *row[1:4]) for time, row in zip(times, rows, strict=True)]
    checked = RecordReader(build_batch(new, base_offset=40, codec=codec)).check()
    timestamps = [time for time in times if time != -1]
    newest = max(*times, -1)
    assert checked.max_timestamp == newest
    assert checked.max_timestamp_offset == 40 + (times.index(newest) if newest in times else 0)
    assert checked.min_timestamp == min(timestamps, default=(1 << 63) - 1)
    assert checked.keyless == sum(record[1] is None for record in new)


def record(delta: int, value: bytes = b"v", *, time: int = 0) -> bytes:
    body = b"\0" + varint(time) + varint(delta) + b"\1" + varint(len(value)) + value + b"\0"
    return varint(len(body)) + body


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize(
    ("body", "count", "problem"),
    [
        (record(0) + record(2), 2, "record 2 of 2 does not have the offset after the one before"),
        (record(0) + record(0), 2, "record 2 of 2 does not have the offset after the one before"),
        (record(1), 1, "record 1 of 1 does not have the offset"),
        (record(0) + record(1) + record(2), 2, "bytes or more after the last of 2 records"),
        (record(0) + record(1), 3, "record 3 of 3 is cut off"),
        (record(0) + record(1)[:-1], 2, "record 2 of 2 is cut off"),
        (record(0) + b"\xff" * 40, 2, "record 2 of 2 has a length no record can have"),
        (record(0) + b"\x03" + b"\0" * 40, 2, "record 2 of 2 has a length no record can have"),
        (b"\0" + record(0), 1, "record 1 of 1 has a length no record can have"),
        (b"\x10\0\0\0\x03ab\0\0", 1, "has a key whose length does not fit"),
        (b"\x10\0\0\0\x0caa\0\0", 1, "has a key whose length does not fit"),
        (b"\x10\0\0\0\x02a\x03b\0", 1, "has a value whose length does not fit"),
        (b"\x10\0\0\0\x02a\x20b\0", 1, "has a value whose length does not fit"),
        (b"\x10\0\0\0\x02a\x02b\x02", 1, "has headers that do not fit"),
        (b"\x10\0\0\0\x02a\x02b\x01", 1, "has headers that do not fit"),
        (b"\x14\0\0\0\x02a\x02b\x02\x01\x00", 1, "has headers that do not fit"),
        (b"\x18\0\0\0\x02a\x02b\0aaaa", 1, "does not end where its length says"),
        (b"\x1c\0" + b"\x80" * 10 + b"\0\0\0", 1, "has a timestamp that is no number of 64 bits"),
        (b"\x1e\0\0" + b"\xff" * 4 + b"\x7f" + b"\0" * 8, 1, "has an offset that is no number of 64 bits"),
    ],
)
def test_broken_bodies_are_refused_by_name(codec: Codec, body: bytes, count: int, problem: str) -> None:
    with pytest.raises(CorruptRecordBatch, match=problem):
        RecordReader(batch_with(body, count=count, codec=codec)).check()


@pytest.mark.parametrize("field", ["base_offset", "base_timestamp"])
def test_sums_beyond_64_bits_are_refused(field: str) -> None:
    batch = batch_with(record(0) + record(1, time=5), count=2, **{field: (1 << 63) - 1})
    for read in (decode_records, decode_columns, lambda batch: RecordReader(batch).check()):
        with pytest.raises(CorruptRecordBatch, match=r"record 2 of 2 has an? .* no number of 64 bits"):
            read(batch)


def test_a_limit_for_one_record() -> None:
    batch = build_batch([(0, b"k", b"v" * 100, ()), (0, b"k", b"v" * 101, ())])
    size = 1 + 1 + 1 + 1 + 1 + 2 + 100 + 1
    assert len(RecordReader(batch, record_limit=size + 1).records()) == 2
    with pytest.raises(CorruptRecordBatch, match="record 2 of 2 is longer than a record may be"):
        RecordReader(batch, record_limit=size).check()


def test_a_batch_that_is_cut_off() -> None:
    batch = build_batch([(0, b"k", b"v", ())])
    for end in range(len(batch)):
        with pytest.raises(CorruptRecordBatch):
            RecordReader(batch[:end])


# Damage


@given(
    rows=rows,
    codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.SNAPPY]),
    changes=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=3),
    count=st.integers(-1, 2),
    cut=st.integers(0, 3),
)
@example(rows=[(0, b"k", b"v", (), 1)] * 2, codec=Codec.NONE, changes=[(0, 0x11)], count=0, cut=0)
@example(rows=[(0, b"k", b"v", (), 1)] * 2, codec=Codec.NONE, changes=[(4, 0x03)], count=0, cut=0)
@example(rows=[(0, b"k", b"\0\0", (), 1)] * 2, codec=Codec.NONE, changes=[(6, 0x02)], count=0, cut=0)
def test_damage_is_read_as_a_plain_decoder_reads_it(
    rows: list[Row], codec: Codec, changes: list[tuple[int, int]], count: int, cut: int
) -> None:
    body = bytearray(batch_of(rows)[HEADER_SIZE:])
    for place, byte in changes:
        body[place % len(body)] = byte
    damaged = bytes(body[: len(body) - cut])
    try:
        expected = reference(batch_with(damaged, count=len(rows) + count))
    except (ValueError, IndexError):
        expected = None
    batch = batch_with(damaged, count=len(rows) + count, codec=codec)
    forms: list[Any] = [
        lambda: decode_records(batch),
        lambda: list(decode_columns(batch).records()),
        lambda: all_arrow(RecordReader(batch), [2, 3]),
        lambda: in_pieces(RecordReader(batch), [1, 2]),
    ]
    for form in forms:
        if expected is None:
            with pytest.raises(CorruptRecordBatch):
                form()
        else:
            assert form() == expected
    if expected is None:
        for verdict in (lambda: RecordReader(batch).check(), lambda: RecordReader(batch).latest({})):
            with pytest.raises(CorruptRecordBatch):
                verdict()


@given(body=st.binary(max_size=60), count=st.integers(0, 5))
def test_rubbish_is_read_as_a_plain_decoder_reads_it(body: bytes, count: int) -> None:
    batch = batch_with(body, count=count)
    try:
        expected = reference(batch)
    except (ValueError, IndexError):
        with pytest.raises(CorruptRecordBatch):
            decode_records(batch)
    else:
        assert decode_records(batch) == expected


def test_columns_from_an_offset_on() -> None:
    records: list[Record] = [(offset, offset * 10, b"k", None, ()) for offset in (3, 5, 8)]
    for first in range(10):
        assert list(Columns.of(records).from_offset(first).records()) == [r for r in records if r[0] >= first]
