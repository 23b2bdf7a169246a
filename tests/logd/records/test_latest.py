"""Each key's last value out of a batch: what `decode_records` says, in a dict; and whatever the bytes are."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logd.errors import CorruptRecordBatch
from logd.records import (
    HEADER_SIZE,
    Codec,
    NewRecord,
    assign_append_time,
    build_batch,
    decode_latest,
    decode_records,
    read_header,
)
from logd.records.header import HEADER

LONG = 9000
keys = st.none() | st.sampled_from([b"", b"a", b"b", b"k" * 64, b"k" * LONG])
values = st.none() | st.binary(max_size=30) | st.sampled_from([b"v" * 63, b"v" * 64, b"v" * LONG])
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=80)), max_size=3).map(tuple)
timestamps = st.integers(0, 1 << 50) | st.integers(1_700_000_000_000, 1_700_000_020_000)
new_records = st.lists(st.tuples(timestamps, keys, values, headers), min_size=1, max_size=12)
many: list[NewRecord] = [(1000 + n * n, b"k%d" % (n % 200), b"%d" % n, ()) for n in range(9000)]
"""Offsets and timestamps of up to three bytes and more."""


def read(batch: bytes, before: dict[bytes, bytes | None] | None = None) -> dict[bytes, bytes | None]:
    latest: dict[bytes, bytes | None] = {} if before is None else before
    decode_latest(memoryview(batch), read_header(batch), latest)
    return latest


def expected(batch: bytes) -> dict[bytes, bytes | None]:
    return {
        key: None if value is None else struct.pack(">q", timestamp) + value
        for _, timestamp, key, value, _ in decode_records(batch)
        if key is not None
    }


@given(records=new_records, codec=st.sampled_from(Codec))
@example(records=many, codec=Codec.NONE)
def test_what_each_key_has_last(records: list[NewRecord], codec: Codec) -> None:
    batch = build_batch(records, base_offset=7, codec=codec)
    latest: dict[bytes, bytes | None] = {}
    keyed = decode_latest(memoryview(batch), read_header(batch), latest)
    assert latest == expected(batch)
    assert keyed == sum(key is not None for _, key, _, _ in records)


def test_log_append_time_is_every_records() -> None:
    batch = bytearray(build_batch([(5, b"a", b"1", ()), (900, b"b", b"2", ())]))
    assign_append_time(batch, 77)
    time = struct.pack(">q", 77)
    assert read(bytes(batch)) == expected(bytes(batch)) == {b"a": time + b"1", b"b": time + b"2"}


def test_a_later_batch_counts_over_an_earlier_one() -> None:
    latest = read(build_batch([(5, b"a", b"1", ()), (5, b"b", b"1", ())]))
    latest = read(build_batch([(6, b"a", None, ())]), latest)
    assert latest == {b"a": None, b"b": struct.pack(">q", 5) + b"1"}


WHOLE = build_batch(
    [(100, b"key", b"v" * 90, (("name", b"x"),)), (90, None, None, ()), (95, b"k" * 70, b"", ())]
)


def test_no_byte_makes_it_anything_but_corrupt() -> None:
    refused = 0
    for at in range(HEADER_SIZE, len(WHOLE)):
        for byte in (0, 1, 2, 0x7F, 0x80, 0xFF):
            try:
                read(WHOLE[:at] + bytes((byte,)) + WHOLE[at + 1 :])
            except CorruptRecordBatch:
                refused += 1
    assert refused


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"\x0e\x00\x00\x00\x02a\x00", "a record ends at byte"),  # one byte short of its headers
        (b"\x10\x00\x00\x00\x02a\x02b\x00\x00", "1 bytes after the last"),
        (b"\x10\x00\x00\x00\x03a\x02b\x00", "a key of negative length"),
        (b"\x10\x00\x00\x00\x02a\x03b\x00", "a value of negative length"),
        (b"\x10\x00\x00\x00\x02a\x20b\x00", "its length says"),
        (b"\x7e\x00\x00\x00\x02a\x02b\x00", "a record ends at byte 64 of 9"),
        (b"\x10\xff\x80\x80\x80\x80\x80\x80\x80", "a record is cut off"),
    ],
)
def test_garbage_is_named(body: bytes, what: str) -> None:
    size = HEADER_SIZE - 12 + len(body)
    batch = HEADER.pack(0, size, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1) + body
    with pytest.raises(CorruptRecordBatch, match=what):
        read(batch)


def test_a_timestamp_beyond_64_bits_is_corrupt() -> None:
    batch = bytearray(build_batch([((1 << 63) - 1, b"a", b"1", ()), ((1 << 63) - 1, b"b", b"1", ())]))
    at = bytes(batch).index(b"\x02b") - 2
    batch[at] = 2  # a millisecond later
    with pytest.raises(CorruptRecordBatch, match="64 bits"):
        read(bytes(batch))
