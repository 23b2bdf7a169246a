"""Whatever the bytes are: records, or CorruptRecordBatch; never anything else, and no memory for lies."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import (
    HEADER_SIZE,
    Codec,
    build_batch,
    check_crc,
    compress,
    decode_records,
    decompress,
    iter_batches,
    read_header,
)
from kafka_client.records.header import HEADER
from kafka_client.records.varint import varint
from tests.support.depth import deep

BATCHES = {
    codec: build_batch(
        [
            (100, b"key", b"v" * 90, (("name", b"x"), ("other", None))),
            (90, None, None, ()),
            (100_000, b"k" * 100, b"", ()),
        ],
        codec=codec,
    )
    for codec in Codec
}


@contextmanager
def allocating_less_than(size: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size


def batch_of(body: bytes, *, count: int = 1, attributes: int = 0) -> bytes:
    """Return a batch with `body` as its records; its CRC is wrong, which the decoder does not check."""
    size = HEADER_SIZE - 12 + len(body)
    return HEADER.pack(0, size, 0, 2, 0, attributes, max(count - 1, 0), 0, 0, -1, -1, -1, count) + body


def decode_or_refuse(batch: bytes) -> None:
    try:
        records = decode_records(batch)
    except CorruptRecordBatch:
        return
    for offset, timestamp, key, value, headers in records:
        assert isinstance(offset, int) and isinstance(timestamp, int)
        assert key is None or isinstance(key, bytes)
        assert value is None or isinstance(value, bytes)
        assert isinstance(headers, tuple)


@given(data=st.binary(max_size=150))
def test_garbage_batches(data: bytes) -> None:
    decode_or_refuse(data)
    try:
        for pos, header in iter_batches(data):
            check_crc(data, pos, header)
    except CorruptRecordBatch:
        pass


@given(body=st.binary(max_size=80), count=st.integers(0, 4), codec=st.integers(0, 7))
def test_garbage_bodies(body: bytes, count: int, codec: int) -> None:
    decode_or_refuse(batch_of(body, count=count, attributes=codec))


@given(
    codec=st.sampled_from(Codec),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 300),
)
def test_damaged_batches(codec: Codec, changes: list[tuple[int, int]], cut: int) -> None:
    batch = bytearray(BATCHES[codec])
    for position, value in changes:
        batch[position % len(batch)] = value
    decode_or_refuse(bytes(batch))
    decode_or_refuse(bytes(batch[: -cut or None]))
    damaged = bytes(batch) != BATCHES[codec]
    try:
        check_crc(batch, 0, read_header(batch))
    except CorruptRecordBatch:
        assert damaged
    else:
        # What the CRC does not cover is the broker's to write.
        assert batch[17:] == BATCHES[codec][17:]


@given(codec=st.sampled_from(list(Codec)[1:]), data=st.binary(max_size=100), prefix=st.booleans())
def test_garbage_does_not_decompress(codec: Codec, data: bytes, prefix: bool) -> None:
    magic = compress(codec, b"hello " * 40)[:8] if prefix else b""
    try:
        assert isinstance(decompress(codec, magic + data, 1 << 20), bytes)
    except CorruptRecordBatch:
        pass


def record(body: bytes) -> bytes:
    return varint(len(body)) + body


NULLS = b"\1\1\0"  # key, value, no headers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x0c\0\0\0\1\1",  # cut off
        record(b"\0\0\0" + NULLS)[:-1],
        record(b"\0\0\0" + NULLS) + b"more",
        b"\x0b\0\0\0" + NULLS,  # negative length
        b"\xff\xff\xff\xff\x0f" + b"\0\0\0" + NULLS,
        b"\x80" * 12 + b"\0\0\0" + NULLS,  # endless varint
        record(b"\0\0\0" + b"\3\1\0"),  # key of length -2
        record(b"\0\0\0" + b"\1\3\0"),  # value of length -2
        record(b"\0\0\0" + varint(1 << 30) + b"\1\0"),
        record(b"\0\0\0" + b"\1" + varint(1 << 30) + b"\0"),
        record(b"\0\0\0" + b"\1\1" + varint(1 << 30)),  # headers
        record(b"\0\0\0" + b"\1\1" + varint(-1)),
        record(b"\0\0\0" + b"\1\1" + varint(1) + b"\1\1"),  # a header without a name
        record(b"\0\0\0" + b"\1\1" + varint(1) + b"\0\3"),  # a header's value of length -2
        record(b"\0\0\0" + b"\1\1" + varint(1) + b"\0" + varint(1 << 20)),
        record(b"\0\0\0" + NULLS + b"rest"),
    ],
)
def test_records_that_lie(body: bytes) -> None:
    with pytest.raises(CorruptRecordBatch):
        decode_records(batch_of(body))


@pytest.mark.parametrize("count", [0x7FFF_FFFF, 2])
def test_lying_counts_allocate_nothing(count: int) -> None:
    batch = batch_of(record(b"\0\0\0" + NULLS), count=count)
    with (
        allocating_less_than(50_000),
        pytest.raises(CorruptRecordBatch, match=f"record 2 of {count} is cut off"),
    ):
        decode_records(batch)


@pytest.mark.parametrize(
    ("position", "packed", "complaint"),
    [
        (16, b"\1", "magic 1"),
        (8, struct.pack(">i", 48), "less than a header"),
        (8, struct.pack(">i", -5), "less than a header"),
        (57, struct.pack(">i", -1), "count -1"),
        (23, struct.pack(">i", -1), "last offset delta -1"),
    ],
)
def test_headers_that_lie(position: int, packed: bytes, complaint: str) -> None:
    batch = bytearray(BATCHES[Codec.NONE])
    batch[position : position + len(packed)] = packed
    for read in (read_header, decode_records, lambda data: list(iter_batches(data))):
        with pytest.raises(CorruptRecordBatch, match=complaint):
            read(batch)


def test_unknown_codec() -> None:
    with pytest.raises(CorruptRecordBatch, match="codec 5"):
        decode_records(batch_of(b"abcdefg", attributes=5))


def test_names_of_codecs() -> None:
    assert Codec.named("lz4") is Codec.LZ4
    with pytest.raises(ValueError, match="none, gzip, snappy, lz4, zstd"):
        Codec.named("brotli")


@given(data=st.binary(max_size=1000) | st.just(b"abc" * 100_000), codec=st.sampled_from(Codec))
def test_compression_round_trips(data: bytes, codec: Codec) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("level", [1, 9])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_levels(codec: Codec, level: int) -> None:
    data = b"the same words again and again " * 1000
    assert decompress(codec, compress(codec, data, level)) == data


def test_other_writers_framings() -> None:
    data = b"hello world " * 50_000
    raw_snappy = bytes(cramjam.snappy.compress_raw(data))
    assert decompress(Codec.SNAPPY, raw_snappy) == data
    two_members = gzip.compress(data) + gzip.compress(b"more")
    assert decompress(Codec.GZIP, two_members) == data + b"more"
    linked = bytes(cramjam.lz4.compress(data))
    assert decompress(Codec.LZ4, linked) == data
    for checksum in (True, False):
        frame = cramjam.lz4.Compressor(level=4, content_checksum=checksum, block_linked=False)
        frame.compress(data)
        assert decompress(Codec.LZ4, bytes(frame.finish())) == data
    stream = cramjam.zstd.Compressor(level=1)  # no content size, like Java's stream
    stream.compress(data)
    assert decompress(Codec.ZSTD, bytes(stream.finish())) == data


def test_lz4_blocks_are_independent() -> None:
    """Java refuses linked blocks."""
    assert compress(Codec.LZ4, b"x" * 300_000)[4] & 0x20


@deep
@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_bombs_are_refused_before_they_burst(codec: Codec) -> None:
    bomb = compress(codec, bytes(40_000_000))
    with allocating_less_than(5_000_000), pytest.raises(CorruptRecordBatch, match="more than 1000000 bytes"):
        decompress(codec, bomb, 1_000_000)
    assert len(decompress(codec, bomb, 50_000_000)) == 40_000_000


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\0abc"),
        (Codec.SNAPPY, b"\xff\xff\xff\x0f\0abc"),
        (Codec.SNAPPY, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\x7f\xff\xff\xffabc"),
        (Codec.SNAPPY, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\xff\xff\xff\xffabc"),
        (Codec.ZSTD, b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + b"\1\0\0"),
        (Codec.ZSTD, b"\x50\x2a\x4d\x18\0\0\0\0" + compress(Codec.ZSTD, bytes(3_000_000))),
        (Codec.LZ4, b"\x50\x2a\x4d\x18\0\0\0\0" + compress(Codec.LZ4, bytes(3_000_000))),
        (Codec.GZIP, zlib.compress(b"abc", wbits=31)[:-1]),
    ],
)
def test_lying_sizes_do_not_decompress(codec: Codec, data: bytes) -> None:
    with pytest.raises(CorruptRecordBatch):
        decompress(codec, data, 1_000_000)
