"""Batches are built, read, rebuilt and restamped, and compared with those of aiokafka and kafka-python."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given
from hypothesis import strategies as st

import kafka_client.records
from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import (
    ABORT,
    COMMIT,
    HEADER_SIZE,
    Codec,
    NewRecord,
    Record,
    assign_append_time,
    assign_offset,
    build_batch,
    build_end_marker,
    check_crc,
    decode_columns,
    decode_records,
    estimate_sizes,
    iter_batches,
    parse_control,
    parse_end_marker,
    read_header,
    rebuild_batch,
    restamp,
    whole_batches_size,
)
from kafka_client.records.build import seal
from kafka_client.records.header import DELETE_HORIZON_BIT

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated function while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as PyBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as PyBuilder

payloads = st.none() | st.binary(max_size=30) | st.sampled_from([b"p" * 63, b"p" * 64, b"p" * 9000])
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple)
timestamps = st.integers(0, 1 << 50) | st.integers(1_700_000_000_000, 1_700_000_000_500)
new_records = st.lists(st.tuples(timestamps, payloads, payloads, headers), min_size=1, max_size=12)
codecs = st.sampled_from(Codec)

PLAIN: list[NewRecord] = [(1000 + i, b"k%d" % i, b"v" * i, ()) for i in range(200)]


def with_offsets(records: list[NewRecord], base: int = 0) -> list[Record]:
    return [(base + index, *record) for index, record in enumerate(records)]


@given(records=new_records, codec=codecs, base=st.integers(0, 1 << 60))
def test_round_trip(records: list[NewRecord], codec: Codec, base: int) -> None:
    batch = build_batch(records, base_offset=base, codec=codec, leader_epoch=3, producer_id=9)
    header = read_header(batch)
    check_crc(batch, 0, header)
    assert header.size == len(batch)
    assert (header.codec, header.count, header.partition_leader_epoch) == (codec, len(records), 3)
    assert (header.base_offset, header.next_offset) == (base, base + len(records))
    assert header.max_timestamp == max(record[0] for record in records)
    assert decode_records(batch) == with_offsets(records, base)
    assert decode_records(memoryview(b"x" + batch + b"y"), 1) == with_offsets(records, base)
    columns = decode_columns(bytearray(batch))
    rows = zip(
        columns.offsets, columns.timestamps, columns.keys, columns.values, columns.headers, strict=True
    )
    assert list(rows) == with_offsets(records, base)


@given(records=new_records)
def test_estimate_is_an_upper_bound(records: list[NewRecord]) -> None:
    assert sum(estimate_sizes(records)) >= len(build_batch(records)) - HEADER_SIZE


@given(records=new_records, codec=codecs, transactional=st.booleans())
def test_aiokafka_reads_ours(records: list[NewRecord], codec: Codec, transactional: bool) -> None:
    batch = build_batch(
        records, codec=codec, producer_id=7, producer_epoch=2, base_sequence=11, transactional=transactional
    )
    theirs = AioBatch(batch)
    assert theirs.validate_crc()
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (7, 2, 11)
    assert (theirs.is_transactional, theirs.is_control_batch) == (transactional, False)
    assert theirs.compression_type == codec
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs] == with_offsets(
        records
    )


@given(records=new_records, codec=codecs)
def test_we_read_aiokafkas(records: list[NewRecord], codec: Codec) -> None:
    builder = AioBuilder(2, codec, 1, 5, 6, 7, 1 << 20)
    for offset, (timestamp, key, value, named) in enumerate(records):
        assert builder.append(offset, timestamp, key, value, list(named)) is not None
    batch = bytes(builder.build())
    header = read_header(batch)
    check_crc(batch, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 6, 7)
    assert header.is_transactional
    assert decode_records(batch) == with_offsets(records)
    if codec is Codec.NONE:
        ours = build_batch(records, producer_id=5, producer_epoch=6, base_sequence=7, transactional=True)
        assert ours == batch[:12] + b"\xff\xff\xff\xff" + batch[16:]


@given(records=new_records, codec=st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_kafka_python_reads_and_writes_the_same(records: list[NewRecord], codec: Codec) -> None:
    theirs = PyBatch(build_batch(records, codec=codec))
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs] == with_offsets(
        records
    )
    builder = PyBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for offset, (timestamp, key, value, named) in enumerate(records):
        builder.append(offset, timestamp, key, value, list(named))
    assert decode_records(bytes(builder.build())) == with_offsets(records)


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        build_batch([])


def test_log_append_time_counts_for_every_record() -> None:
    batch = bytearray(build_batch(PLAIN, codec=Codec.LZ4))
    assign_append_time(batch, 5_000)
    header = read_header(batch)
    check_crc(batch, 0, header)
    assert header.timestamp_type == 1
    assert decode_records(batch) == [(offset, 5_000, *record[1:]) for offset, record in enumerate(PLAIN)]
    assert {record.timestamp for record in AioBatch(bytes(batch))} == {5_000}


def test_offsets_and_epoch_are_assigned_outside_the_crc() -> None:
    batch = bytearray(b"123" + build_batch(PLAIN))
    assign_offset(batch, 1 << 40, 12, pos=3)
    header = read_header(batch, 3)
    check_crc(batch, 3, header)
    assert (header.base_offset, header.partition_leader_epoch) == (1 << 40, 12)


def test_restamped_batches_keep_their_records_compressed() -> None:
    original = build_batch(PLAIN, base_offset=77, codec=Codec.ZSTD, producer_id=1, transactional=True)
    stamped = restamp(
        memoryview(original + b"next"),
        read_header(original),
        producer_id=5,
        producer_epoch=1,
        base_sequence=30,
    )
    header = read_header(stamped)
    check_crc(stamped, 0, header)
    assert stamped[HEADER_SIZE:] == original[HEADER_SIZE:]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 30)
    assert (header.base_offset, header.is_transactional, header.codec) == (0, False, Codec.ZSTD)
    assert decode_records(stamped) == with_offsets(PLAIN)


def test_a_restamped_batch_leaves_its_delete_horizon_behind() -> None:
    """KIP-534: the horizon belongs to the source cluster's cleaner, yet it is the base of timestamps."""
    plain = build_batch([(10**12, None, None, ()), (1000, b"k", None, ())])
    header = read_header(plain)
    header = header._replace(attributes=header.attributes | DELETE_HORIZON_BIT)
    noted = seal(header, plain[HEADER_SIZE:])
    stamped = restamp(noted, read_header(noted), producer_id=5, producer_epoch=1, base_sequence=30)
    check_crc(stamped, 0, read_header(stamped))
    assert read_header(stamped).delete_horizon is None
    assert [record[1] for record in decode_records(stamped)] == [10**12, 1000]


@pytest.mark.parametrize("codec", Codec)
def test_rebuilt_batches_keep_offsets_and_ends(codec: Codec) -> None:
    batch = build_batch(PLAIN, base_offset=50, codec=codec, producer_id=3, producer_epoch=0, base_sequence=8)
    header = read_header(batch)
    remaining = decode_records(batch)[5:190:3]
    rebuilt = rebuild_batch(header, remaining)
    after = read_header(rebuilt)
    check_crc(rebuilt, 0, after)
    assert decode_records(rebuilt) == remaining
    assert (after.base_offset, after.last_offset, after.count) == (50, header.last_offset, len(remaining))
    assert (after.producer_id, after.base_sequence, after.last_sequence) == (3, 8, header.last_sequence)
    assert after.codec == codec
    assert after.max_timestamp == max(record[1] for record in remaining)
    assert [record.offset for record in AioBatch(rebuilt)] == [record[0] for record in remaining]


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_compaction_emptied_is_a_header(codec: Codec) -> None:
    batch = build_batch(PLAIN, base_offset=50, codec=codec)
    empty = rebuild_batch(read_header(batch), [])
    header = read_header(empty)
    check_crc(empty, 0, header)
    assert len(empty) == HEADER_SIZE
    assert (header.count, header.next_offset) == (0, 250)
    assert decode_records(empty) == []
    assert decode_columns(empty).offsets == []


def test_iteration_stops_at_a_partial_batch() -> None:
    batches = [build_batch(PLAIN[:size], base_offset=size) for size in (1, 5, 20)]
    log = b"".join(batches)
    whole = len(batches[0]) + len(batches[1])
    for cut in (0, 1, 60, 61, len(batches[2]) - 1):
        buffer = memoryview(log)[: whole + cut]
        located = list(iter_batches(buffer))
        assert [header.base_offset for _, header in located] == [1, 5]
        assert [pos for pos, _ in located] == [0, len(batches[0])]
        assert whole_batches_size(buffer) == whole
    assert len(list(iter_batches(log))) == 3
    assert whole_batches_size(log, len(batches[0])) == len(log) - len(batches[0])


def test_last_sequence_wraps() -> None:
    header = read_header(build_batch(PLAIN[:3], producer_id=1, producer_epoch=0, base_sequence=0x7FFF_FFFF))
    assert header.last_sequence == 1
    assert read_header(build_batch(PLAIN)).last_sequence == -1


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_end_markers(kind: int) -> None:
    marker = build_end_marker(
        kind, timestamp_ms=99, producer_id=4, producer_epoch=2, coordinator_epoch=8, base_offset=3
    )
    header = read_header(marker)
    assert header.is_control and header.is_transactional and header.has_producer
    assert (header.producer_epoch, header.base_sequence, header.count) == (2, -1, 1)
    ((offset, timestamp, key, value, _),) = decode_records(marker)
    assert (offset, timestamp) == (3, 99)
    assert parse_control(key) == (0, kind)
    assert parse_end_marker(value) == 8
    assert AioBatch(marker).is_control_batch


@pytest.mark.parametrize("garbage", [None, b"", b"\0\0\0"])
def test_control_records_that_are_none(garbage: bytes | None) -> None:
    with pytest.raises(CorruptRecordBatch):
        parse_control(garbage)
    with pytest.raises(CorruptRecordBatch):
        parse_end_marker(garbage)


def test_delete_horizon() -> None:
    header = read_header(build_batch(PLAIN))
    assert header.delete_horizon is None
    assert header._replace(attributes=header.attributes | 0x40).delete_horizon == 1000


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ((1 << 63, None, None, ()), OverflowError),
        (("soon", None, None, ()), TypeError),
        ((0, "text", None, ()), TypeError),
        ((0, None, 3, ()), TypeError),
    ],
)
def test_values_that_are_no_record(record: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        build_batch([(0, None, None, ()), record])


def test_exports() -> None:
    assert [name for name in kafka_client.records.__all__ if not hasattr(kafka_client.records, name)] == []
