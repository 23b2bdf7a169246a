"""A batch is passed from cluster to cluster with its records, codec and timestamps."""

from __future__ import annotations

import pytest

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import (
    Codec,
    assign_append_time,
    build_batch,
    decode_records,
    read_header,
    rebuild_batch,
)
from mirror.forward_batch import have_equal_ends, pass_on, record_count
from tests.mirror.pair import numbered


def batch_at(offset: int, count: int, codec: Codec = Codec.LZ4) -> memoryview:
    return memoryview(build_batch(numbered(count, offset), base_offset=offset, codec=codec))


def compacted(offset: int, count: int, keep: list[int]) -> memoryview:
    whole = batch_at(offset, count)
    remaining = [record for record in decode_records(whole) if record[0] in keep]
    return memoryview(rebuild_batch(read_header(whole), remaining))


def test_a_dense_batch_goes_as_it_is() -> None:
    batch = batch_at(100, 10)
    passed = pass_on(read_header(batch), batch, 100)
    assert passed is not None
    assert passed.batch is batch
    assert (passed.records, passed.first_offset, passed.next_offset) == (10, 100, 110)


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_with_gaps_is_built_anew_by_its_codec(codec: Codec) -> None:
    whole = batch_at(100, 10, codec)
    remaining = [record for record in decode_records(whole) if record[0] in (103, 107)]
    batch = memoryview(rebuild_batch(read_header(whole), remaining))
    passed = pass_on(read_header(batch), batch, 100)
    assert passed is not None
    header = read_header(passed.batch)
    assert (header.count, header.last_offset_delta, header.codec) == (2, 1, codec)
    assert (passed.first_offset, passed.next_offset) == (103, 110)
    assert [r[1:] for r in decode_records(passed.batch)] == [r[1:] for r in remaining]


def test_nothing_is_left_of_a_batch_compaction_emptied() -> None:
    batch = compacted(100, 10, [])
    assert pass_on(read_header(batch), batch, 100) is None
    assert record_count(read_header(batch), batch, 100) == 0


def test_log_append_time_becomes_the_records_own() -> None:
    batch = bytearray(batch_at(0, 3))
    assign_append_time(batch, 1_700_000_000_000)
    passed = pass_on(read_header(batch), memoryview(batch), 0)
    assert passed is not None
    assert read_header(passed.batch).timestamp_type == 0
    assert [r[1] for r in decode_records(passed.batch)] == [1_700_000_000_000] * 3


def test_records_before_the_position_are_left_out() -> None:
    batch = batch_at(100, 10)
    passed = pass_on(read_header(batch), batch, 104)
    assert passed is not None
    assert (passed.records, passed.first_offset, passed.next_offset) == (6, 104, 110)
    assert record_count(read_header(batch), batch, 104) == 6
    assert have_equal_ends(batch, memoryview(passed.batch), 104)
    assert have_equal_ends(batch, memoryview(passed.batch), 100)
    assert not have_equal_ends(batch_at(100, 9), memoryview(passed.batch), 100)
    assert not have_equal_ends(batch, memoryview(passed.batch), 110)


def test_a_broken_batch_gets_no_new_crc() -> None:
    batch = bytearray(batch_at(0, 3))
    batch[-1] ^= 1
    with pytest.raises(CorruptRecordBatch):
        pass_on(read_header(batch), memoryview(batch), 0)
